//! Engines that die.

use anyhow::{Result, ensure};
use e2e::faults::retention::policy;
use e2e::fixtures::PATIENCE;
use e2e::fixtures::status::now;
use e2e::proxy::Fault;
use e2e::until::until_ok;
use invariants::retention::Terms;
use invariants::{History, State};
use serde_json::{Value, json};

use super::{is_enforcing, named, place, ttl};

/// Whether a policy has ever tripped, by its stored status.
pub(crate) fn ever_tripped(history: &History) -> bool {
    let tripped = |state: &State| matches!(state, State::Policy(policy) if policy.trip.is_some());
    history.changes.iter().any(|change| tripped(&change.object.state))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_due_while_no_engine_ran_is_deleted_without_a_trip() -> Result<()> {
    let place = place("down").await?;
    let mut few = policy("jobs", "Job", &ttl(4));
    few["spec"]["breaker"] = json!({"maxCount": 5});
    place.apply(few).await?;
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    place.kill();
    place.finished(named("job", 40), &Value::Null).await?;
    let due = now().plus(5);
    until_ok("all are due", PATIENCE, || async {
        ensure!(now() > due, "not yet");
        Ok(())
    })
    .await?;
    ensure!(place.names("jobs").await?.len() == 40 && place.deletions() == 0, "it was down");
    place.launch().await?;
    place.becomes("jobs", &[]).await?;
    let history = place.judge(&Terms::default()).await?;
    ensure!(!ever_tripped(&history), "it has tripped");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_killed_again_and_again_has_each_deletion_accepted_once() -> Result<()> {
    let place = place("killed").await?;
    let mut many = policy("jobs", "Job", &ttl(0));
    many["spec"]["breaker"] = json!({"maxCount": 1000});
    place.finished(named("job", 150), &Value::Null).await?;
    place.apply(many).await?;
    for engine in 1..=3 {
        // Counted from the start of the engine that is to die, which cannot delete all before it is killed.
        let held = 10..=usize::MAX;
        let deleted = place.proxy.inject(|call| call.verb == "delete", held, Fault::HoldReply);
        place.launch().await?;
        deleted.reached().await?;
        place.kill();
        deleted.remove();
        ensure!(!place.names("jobs").await?.is_empty(), "none is left after engine {engine}");
    }
    place.launch().await?;
    place.becomes("jobs", &[]).await?;
    let history = place.judge(&Terms::default()).await?;
    ensure!(!ever_tripped(&history), "it has tripped");
    let deleted = place.deleted();
    let not_once: Vec<_> = deleted.iter().filter(|(_, counts)| counts.1 != 1).collect();
    ensure!(deleted.len() == 150 && not_once.is_empty(), "{}: {not_once:?}", deleted.len());
    Ok(())
}
