//! Clocks that are wrong (R45, R46).

use anyhow::{Result, ensure};
use e2e::faults::retention::{Place, policy};
use e2e::shifted_clock::ShiftedClock;
use invariants::Object;
use invariants::retention::Terms;
use serde_json::{Value, json};
use trainjob_api::time::Timestamp;

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
        // Long enough to be seen on a busy machine.
        place.launch_with(&json!({"clockJumpPauseSeconds": 10}), Vec::new()).await?;
        place.status("jobs", is_enforcing).await?;
        place.proxy.shift_dates(seconds);
        if seconds > 0 {
            // By that all have been due for long. While the old time may still be right, it counts.
            // It has yet to evaluate its kind again if the watch told of its first write before that was answered.
            let suspects =
                |it: &Value| ["ClockSuspect", "NotReady"].contains(&condition(it, "Enforcing").1);
            place.status("jobs", suspects).await?;
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

/// How far apart the clocks of two API servers are, in seconds.
const APART: i64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn of_two_api_servers_whose_clocks_disagree_the_one_behind_counts() -> Result<()> {
    let (ahead, behind) = (place("ahead").await?, place("behind").await?);
    let ahead = by_two_clocks(&ahead, APART);
    let behind = by_two_clocks(&behind, -APART);
    futures::future::try_join(ahead, behind).await?;
    Ok(())
}

/// Sees that what ends goes, but not before its time has come by either clock: the right one, and one that differs by so
/// much.
async fn by_two_clocks(place: &Place, shift: i64) -> Result<()> {
    place.proxy.shift_every_other_date(shift);
    place.apply(policy("jobs", "Job", &ttl(3))).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    place.finished(named("job", 5), &Value::Null).await?;
    place.becomes("jobs", &[]).await?;
    let history = place.judge(&Terms::default()).await?;
    ensure!(!super::restarts::ever_tripped(&history), "it has tripped, {shift} s");
    for request in history.requests.iter().filter(|it| it.verb == "delete") {
        let is_it = |object: &Object| request.uid.as_ref() == Some(&object.uid);
        let mut objects = history.changes.iter().map(|change| &change.object);
        let due = objects.find(|it| is_it(it)).map(|it| it.created.plus(3 - shift.min(0)));
        let sent = Timestamp(request.sent / 1_000);
        ensure!(due.is_some_and(|due| due <= sent), "{due:?}, and sent at {sent}, {shift} s");
    }
    Ok(())
}
