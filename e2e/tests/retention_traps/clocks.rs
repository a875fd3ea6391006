//! Clocks that are wrong (R45, R46).

use anyhow::{Result, ensure};
use e2e::faults::retention::policy;
use e2e::shifted_clock::ShiftedClock;
use invariants::retention::Terms;
use serde_json::{Value, json};

use super::{WINDOW, condition, has_tripped, is_enforcing, named, place, ttl};

#[tokio::test(flavor = "multi_thread")]
async fn engine_whose_own_clock_is_wrong_by_an_hour_deletes_in_time() -> Result<()> {
    for shift in [-3_600, 3_600] {
        let place = place("shifted").await?;
        let folder = tempfile::tempdir()?;
        let clock = ShiftedClock::new(folder.path())?;
        clock.set(shift)?;
        place.apply(policy("jobs", "Job", &ttl(3))).await?;
        place.launch_with(&Value::Null, clock.environment()).await?;
        place.status("jobs", is_enforcing).await?;
        place.finished(named("job", 5), &Value::Null).await?;
        place.becomes("jobs", &[]).await?;
        let history = place.judge(&Terms::default()).await?;
        ensure!(!super::restarts::ever_tripped(&history), "it has tripped, {shift} s");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn jump_of_the_api_servers_clock_deletes_nothing() -> Result<()> {
    for seconds in [3_600, -3_600] {
        let place = place("jump").await?;
        place.apply(policy("jobs", "Job", &ttl(600))).await?;
        place.finished(named("job", 3), &Value::Null).await?;
        place.launch_with(&json!({"clockJumpPauseSeconds": 2}), Vec::new()).await?;
        place.status("jobs", is_enforcing).await?;
        place.proxy.shift_dates(seconds);
        if seconds > 0 {
            // By that all have been due for long. While the old time may still be right, it counts.
            place.status("jobs", |it| condition(it, "Enforcing").1 == "ClockSuspect").await?;
            place.status("jobs", is_enforcing).await?;
        } else {
            let seen = place.status("jobs", has_tripped).await?;
            ensure!(condition(&seen, "Tripped").1 == "ClockStep", "{seen}");
        }
        place.asks_for_nothing_more(WINDOW).await?;
        ensure!(place.deletions() == 0, "{} deletions, {seconds} s", place.deletions());
        place.judge(&Terms::default()).await?;
    }
    Ok(())
}
