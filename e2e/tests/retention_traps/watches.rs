//! Watches that freeze (R34), and API servers that start (R48).

use anyhow::{Result, ensure};
use e2e::faults::retention::{policy, run};
use e2e::fixtures::PATIENCE;
use e2e::fixtures::status::now;
use e2e::proxy::{Call, Fault};
use e2e::until::until_ok;
use invariants::retention::Terms;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;

use super::restarts::ever_tripped;
use super::{WINDOW, condition, is_enforcing, place, ttl};

/// How long the engine goes on after it has heard nothing of its watches of policies, in seconds.
const CONNECTED: i64 = 10;

/// Has an engine delete one Job every second, freezes those of its watches that this fits, deletes its policy, and sees that it
/// stops in time, and goes on to do nothing when they are back.
async fn stops_when_frozen(
    prefix: &str,
    frozen: impl Fn(&Call) -> bool + Send + Sync + 'static,
) -> Result<()> {
    let place = place(prefix).await?;
    let mut one_by_one = policy("jobs", "Job", &ttl(600));
    one_by_one["spec"]["overrides"] = json!({"annotation": true});
    place.apply(one_by_one).await?;
    // Before there are any: a watch that began earlier would go on, and its end in time would tell of a connection.
    let of_policies = place.proxy.inject(
        |call| call.is_watch() && call.resource == "retentionpolicies",
        1..=usize::MAX,
        Fault::FreezeWatch,
    );
    let others = place.proxy.inject(
        move |call| call.is_watch() && frozen(call),
        1..=usize::MAX,
        Fault::FreezeWatch,
    );
    place.launch().await?;
    place.status("jobs", is_enforcing).await?;
    for due in 0..40 {
        let ttl = json!({"lifecycle.trainjob.dev/ttl-seconds-after-finished": due.to_string()});
        place.finished([format!("job-{due:03}")], &json!({"annotations": ttl})).await?;
    }
    let goes_on = || async {
        ensure!(place.deletions() > 0, "nothing is deleted");
        Ok(())
    };
    until_ok("it deletes", PATIENCE, goes_on).await?;
    of_policies.freeze();
    others.freeze();
    of_policies.reached().await?;
    others.reached().await?;
    place.delete_policy("jobs").await?;

    // One becomes due every second, so silence shows that it has stopped.
    let stops = now().plus(CONNECTED);
    until_ok("it stops", PATIENCE, || async {
        place.asks_for_nothing_more(WINDOW).await?;
        ensure!(now() > stops, "it may go on until then");
        Ok(())
    })
    .await?;
    // Else the end of another watch of policies may tell of a connection before this one tells that the policy is gone.
    of_policies.remove();
    until_ok("the engine knows of no policy", PATIENCE, || async {
        let policies = place.metric("trainjob_retention_policies").await?;
        ensure!(policies == 0.0, "{policies} are known");
        Ok(())
    })
    .await?;
    others.remove();
    place.asks_for_nothing_more(WINDOW).await?;
    let left = place.names("jobs").await?;
    ensure!(!left.is_empty(), "all were due before it could stop");
    place.judge(&Terms { staleness: 1_000 * (CONNECTED + 2), ..Terms::default() }).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_that_is_deleted_while_all_watches_are_frozen_deletes_nothing_more_after_ten_seconds()
-> Result<()> {
    stops_when_frozen("frozen", |_| true).await
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_that_is_deleted_while_its_watch_is_frozen_deletes_nothing_more_after_ten_seconds()
-> Result<()> {
    stops_when_frozen("stale", |call| call.resource.ends_with("retentionpolicies")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn api_server_that_knows_no_custom_resources_for_a_moment_makes_nothing_forgotten()
-> Result<()> {
    let place = place("starting").await?;
    let mut few = policy("runs", "Run", &ttl(6));
    few["spec"]["breaker"] = json!({"maxCount": 3});
    place.apply(few).await?;
    place.launch().await?;
    place.status("runs", is_enforcing).await?;
    let runs = place.objects("runs")?;
    for number in 0..10 {
        let ended = run(&format!("run-{number}"), &json!({"phase": "Succeeded"}));
        let ended: DynamicObject = serde_json::from_value(ended)?;
        runs.create(&PostParams::default(), &ended).await?;
    }
    until_ok("all are known", PATIENCE, || async {
        let known = place.metric("trainjob_retention_objects").await?;
        ensure!(known >= 10.0, "{known} are");
        Ok(())
    })
    .await?;
    let is_custom = |group: &str| group.ends_with(".trainjob.dev");
    let unknown = place.proxy.inject(
        move |call| is_custom(&call.group),
        1..=usize::MAX,
        Fault::Answer { status: 404, retry_after: None },
    );
    until_ok("deletions are answered as if there were no such kind", PATIENCE, || async {
        ensure!(place.deletions() > 0, "none is");
        Ok(())
    })
    .await?;
    let hold = json!({"metadata": {"annotations": {
        "lifecycle.trainjob.dev/hold-until": "2100-01-01T00:00:00Z",
    }}});
    place.edit("runs", "run-7", &hold).await?;
    let late = run("later", &json!({"phase": "Succeeded"}));
    runs.create(&PostParams::default(), &serde_json::from_value::<DynamicObject>(late)?).await?;
    unknown.remove();
    place.becomes("runs", &["run-7"]).await?;
    let history = place.judge(&Terms::default()).await?;
    ensure!(!ever_tripped(&history), "it has tripped");
    let accepted = place.deleted().values().map(|(_, accepted)| accepted).sum::<usize>();
    ensure!(accepted == 10, "{accepted} deletions were accepted");
    Ok(())
}

/// The watch then tells of versions that the engine has written and replaced since.
#[tokio::test(flavor = "multi_thread")]
async fn status_is_written_again_after_the_watch_of_policies_was_behind_the_answers() -> Result<()>
{
    let place = place("behind").await?;
    place.apply(policy("jobs", "Job", &ttl(600))).await?;
    let of_policies = place.proxy.inject(
        |call| call.is_watch() && call.resource == "retentionpolicies",
        1..=usize::MAX,
        Fault::FreezeWatch,
    );
    let of_jobs = place.proxy.inject(
        |call| call.verb == "list" && call.resource == "jobs",
        1..=usize::MAX,
        Fault::Answer { status: 503, retry_after: None },
    );
    of_policies.freeze();
    place.launch().await?;
    // Two writes of which the watch is to tell: this one, and the one that stores the record of the breaker.
    place.status("jobs", |status| condition(status, "Ready").1 == "Syncing").await?;
    of_jobs.remove();
    place.status("jobs", is_enforcing).await?;
    of_policies.remove();
    place.finished(["job".to_owned()], &json!({})).await?;
    place.status("jobs", |status| status["counts"]["finished"] == 1).await?;
    Ok(())
}
