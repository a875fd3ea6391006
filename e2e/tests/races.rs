//! Edits and ends that come while a call of the operator is under way: trap 9 and its kin
//! (`docs/semantics.md`, §7). A proxy holds the call at the moment in question, so no race is left to
//! chance.
//!
//! Each test has a box to itself, with a proxy between it and the operator.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::{conditions_of, created_at, finished_at, now};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES, PATIENCE, POOL, RUNS, consistently};
use e2e::proxy::{Call, Fault, Proxy, Scope};
use e2e::until::until_ok;
use invariants::Request;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::conditions::{COMPLETE, FAILED};
use trainjob_api::crd::{self, FieldUpdates};
use trainjob_api::lifecycle::v1alpha1::HOLD_ANNOTATION;
use trainjob_api::time::Timestamp;

/// Longer than an operator that is about to do something wrong hesitates.
const WINDOW: Duration = Duration::from_secs(3);

/// Runs a test in a box to itself, with an operator behind a proxy.
async fn test(
    prefix: &str,
    body: impl AsyncFnOnce(&Tenant<'_>, &Proxy) -> Result<()>,
) -> Result<()> {
    POOL.test_behind_proxy(prefix, body).await
}

fn deletes_a_job(call: &Call) -> bool {
    call.verb == "delete" && call.resource == "trainjobs"
}

/// The calls that ask for this about objects of this kind.
fn calls(proxy: &Proxy, verb: &str, resource: &str) -> Vec<Request> {
    let mut requests = proxy.requests();
    requests.retain(|it| it.verb == verb && it.resource == resource);
    requests
}

/// The same, once each of them has its answer: others see what a call has done before the proxy has noted the reply.
async fn answered_calls(proxy: &Proxy, verb: &str, resource: &str) -> Result<Vec<Request>> {
    until_ok("each call has its answer", PATIENCE, || async {
        let calls = calls(proxy, verb, resource);
        ensure!(calls.iter().all(|it| it.answer.served.is_some()), "{calls:#?}");
        Ok(calls)
    })
    .await
}

/// What the API server answered each of them.
fn served(requests: &[Request]) -> Vec<Option<u16>> {
    requests.iter().map(|it| it.answer.served).collect()
}

/// Whether there are some, and each was refused as decided on an outdated version. What is decided anew may be, too, until
/// a watch shows the new one.
fn are_conflicts(deletions: &[Request]) -> bool {
    !deletions.is_empty() && deletions.iter().all(|it| it.answer.served == Some(409))
}

/// The one DELETE that came through; it is the last of them.
fn let_through(deletions: &[Request]) -> Result<&Request> {
    let (last, others) = deletions.split_last().context("never deleted")?;
    let is_done = last.answer.served == Some(200);
    ensure!(is_done && are_conflicts(others), "{deletions:#?}");
    Ok(last)
}

// The TTL is changed while its deletion is under way.

#[tokio::test]
async fn a_ttl_raised_in_the_last_moment_wins_and_the_job_goes_when_the_new_one_is_over()
-> Result<()> {
    test("raised", async |tenant, proxy| {
        let held = proxy.inject(deletes_a_job, 1..=1, Fault::HoldRequest);
        tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": 2})).await?;
        held.reached().await?;
        let finished = finished_at(&tenant.jobs.get("job").await?)?;
        let ttl = now().since(finished) + 6;
        tenant.patch("job", &json!({"spec": {"ttlSecondsAfterFinished": ttl}})).await?;
        held.release();
        tenant.gone("job").await?;

        let deletions = answered_calls(proxy, "delete", "trainjobs").await?;
        let sent = let_through(&deletions)?.sent;
        let due = finished.plus(ttl);
        ensure!(sent >= due.0 * 1_000, "deleted at {sent}, due at {due}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_ttl_removed_in_the_last_moment_wins_and_the_job_stays() -> Result<()> {
    test("removed", async |tenant, proxy| {
        let held = proxy.inject(deletes_a_job, 1..=1, Fault::HoldRequest);
        tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": 1})).await?;
        held.reached().await?;
        tenant.patch("job", &json!({"spec": {"ttlSecondsAfterFinished": null}})).await?;
        held.release();
        consistently("the job stays", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(job.metadata.deletion_timestamp.is_none(), "it is being deleted");
            Ok(())
        })
        .await?;
        let deletions = answered_calls(proxy, "delete", "trainjobs").await?;
        ensure!(are_conflicts(&deletions), "{deletions:#?}");
        Ok(())
    })
    .await
}

// A hold is set, or extended, while the deletion is under way.

#[tokio::test]
async fn a_hold_set_in_the_last_moment_wins_and_the_job_goes_when_it_ends() -> Result<()> {
    test("late-hold", async |tenant, proxy| {
        let held = proxy.inject(deletes_a_job, 1..=1, Fault::HoldRequest);
        tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": 1})).await?;
        held.reached().await?;
        let until = now().plus(5);
        let annotations = json!({HOLD_ANNOTATION: until.to_string()});
        tenant.patch("job", &json!({"metadata": {"annotations": annotations}})).await?;
        held.release();
        tenant.gone("job").await?;

        let deletions = answered_calls(proxy, "delete", "trainjobs").await?;
        let sent = let_through(&deletions)?.sent;
        ensure!(sent >= until.0 * 1_000, "deleted at {sent}, held until {until}");
        Ok(())
    })
    .await
}

// Something happens while the deadline is being enforced.

#[tokio::test]
async fn a_job_that_completes_while_its_failure_is_held_up_is_complete() -> Result<()> {
    test("completes", async |tenant, proxy| {
        let held = proxy.inject(Call::marks_failed, 1..=usize::MAX, Fault::HoldRequest);
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 6})).await?;
        let pod = tenant.runs("job").await?.name_any();
        held.reached().await?;
        let succeeded = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
        tenant.pods.patch_status(&pod, &PatchParams::default(), &succeeded).await?;
        // What is decided anew is decided on what was seen meanwhile.
        let job = tenant.becomes("job", COMPLETE).await?;
        finished_at(&job)?;
        held.release();
        held.holds_none().await?;
        consistently("the job stays complete", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            finished_at(&job)?;
            ensure!(conditions_of(&job).iter().all(|it| it.type_ != FAILED), "it has failed");
            Ok(())
        })
        .await?;
        ensure!(tenant.job_sets.get_opt("job").await?.is_some(), "its JobSet was deleted");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_deadline_raised_while_the_failure_is_under_way_wins() -> Result<()> {
    let world = POOL.take().await?.alone();
    let mutable = crd::yaml(&crd::train_job_crd(FieldUpdates::Mutable))?;
    world.cluster.apply_yaml("default", &mutable).await?;
    let body = async |tenant: &Tenant<'_>| {
        let proxy = Proxy::start(&tenant.world.cluster, Scope::Cluster).await?;
        let operator = tenant.world.launch_operator_through(&proxy, "").await?;
        operator.wait_ready().await?;
        let held = proxy.inject(Call::marks_failed, 1..=usize::MAX, Fault::HoldRequest);
        let job = tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 5})).await?;
        held.reached().await?;
        // The API server takes a moment to learn of the other definition.
        until_ok("the deadline can be raised", PATIENCE, || async {
            tenant.patch("job", &json!({"spec": {"activeDeadlineSeconds": 3_600}})).await
        })
        .await?;
        held.remove();
        goes_on(tenant, created_at(&job).plus(5)).await?;
        tenant.world.stop_operator().await
    };
    world.test("deadline-raised", body).await
}

/// Sees that a job runs on although an instant has passed.
async fn goes_on(tenant: &Tenant<'_>, past: Timestamp) -> Result<()> {
    consistently("the job runs on", WINDOW, async || {
        ensure!(now() >= past, "that was before it");
        let job = tenant.jobs.get("job").await?;
        ensure!(finished_at(&job).is_err(), "it has finished: {:?}", conditions_of(&job));
        let job_set = tenant.job_sets.get("job").await?;
        ensure!(job_set.metadata.deletion_timestamp.is_none(), "its JobSet is being deleted");
        Ok(())
    })
    .await
}

// News of different kinds is not ordered.

#[tokio::test]
async fn a_job_whose_jobset_is_seen_to_go_first_gets_no_second_one() -> Result<()> {
    test("order", async |tenant, proxy| {
        tenant.create("job", RUNS, json!({})).await?;
        tenant.runs("job").await?;
        let jobs = |call: &Call| call.is_watch() && call.resource == "trainjobs";
        let frozen = proxy.inject(jobs, 1..=usize::MAX, Fault::FreezeWatch);
        frozen.freeze();
        proxy.end_watches();
        frozen.reached().await?;
        tenant.delete("job").await?;
        let looks = || calls(proxy, "get", "trainjobs");
        until_ok("the operator looks for the job", PATIENCE, || async {
            ensure!(served(&looks()).contains(&Some(404)), "{:#?}", looks());
            Ok(())
        })
        .await?;
        frozen.remove();
        tenant.create("job", RUNS, json!({})).await?;
        tenant.has_job_set("job").await?;
        let made = answered_calls(proxy, "create", "jobsets").await?;
        ensure!(served(&made) == [Some(201), Some(201)], "{made:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_whose_jobset_somebody_deleted_gets_another() -> Result<()> {
    test("again", async |tenant, proxy| {
        tenant.create("job", RUNS, json!({})).await?;
        tenant.runs("job").await?;
        tenant.delete_job_set("job").await?;
        until_ok("it is made again", PATIENCE, || async {
            let made = calls(proxy, "create", "jobsets");
            ensure!(served(&made) == [Some(201), Some(201)], "{made:#?}");
            Ok(())
        })
        .await?;
        let looks = answered_calls(proxy, "get", "trainjobs").await?;
        ensure!(served(&looks) == [Some(200)], "{looks:#?}");
        Ok(())
    })
    .await
}

// The operator does not learn what came of its call.

#[tokio::test]
async fn a_deletion_whose_reply_is_lost_has_happened_once_and_worries_nobody() -> Result<()> {
    test("deletion", async |tenant, proxy| {
        let dropped = proxy.inject(deletes_a_job, 1..=1, Fault::DropReply);
        tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": 1})).await?;
        dropped.reached().await?;
        tenant.gone("job").await?;
        let deletions = calls(proxy, "delete", "trainjobs");
        let done = deletions.iter().filter(|it| it.took_effect()).count();
        ensure!(done == 1, "{deletions:#?}");
        let told = tenant.told("job", "TTLDeletionFailed").await?.len();
        ensure!(told == 0, "told {told} times");
        Ok(())
    })
    .await
}

// The end of a job cannot be stored before its JobSet is gone.

#[tokio::test]
async fn a_job_whose_jobset_went_before_its_end_could_be_stored_ends_as_that_did() -> Result<()> {
    test("went", async |tenant, proxy| {
        let completes = |call: &Call| {
            let body = call.json();
            let conditions = body.pointer("/status/conditions").and_then(Value::as_array);
            conditions.is_some_and(|all| all.iter().any(|it| it["type"] == COMPLETE))
        };
        let busy = Fault::Answer { status: 503, retry_after: None };
        let refused = proxy.inject(completes, 1..=usize::MAX, busy);
        tenant.create("job", COMPLETES, json!({})).await?;
        refused.reached().await?;
        tenant.job_sets.delete("job", &DeleteParams::background()).await?;
        tenant.job_set_gone("job").await?;
        refused.remove();
        tenant.becomes("job", COMPLETE).await?;
        let made = answered_calls(proxy, "create", "jobsets").await?;
        ensure!(made.len() == 1, "it is trained again: {made:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_child_whose_creation_got_no_reply_is_the_jobs_own_and_not_made_twice() -> Result<()> {
    test("creation", async |tenant, proxy| {
        for resource in ["configmaps", "jobsets"] {
            let creates = move |call: &Call| call.verb == "create" && call.resource == resource;
            let dropped = proxy.inject(creates, 1..=1, Fault::DropReply);
            tenant.create(resource, RUNS, json!({})).await?;
            dropped.reached().await?;
            tenant.runs(resource).await?;
            let all = calls(proxy, "create", resource);
            let of_job: Vec<&Request> =
                all.iter().filter(|it| it.name.starts_with(resource)).collect();
            let done = of_job.iter().filter(|it| it.took_effect()).count();
            ensure!(done == 1, "{of_job:#?}");
            let conditions = tenant.jobs.get(resource).await?;
            let conditions = conditions_of(&conditions);
            ensure!(conditions.is_empty(), "it is said to wait: {conditions:?}");
        }
        let events = tenant.events.list(&ListParams::default()).await?.items;
        let warned = events.iter().any(|it| it.reason.as_deref() == Some(CREATION_FAILED));
        ensure!(!warned, "{events:#?}");
        Ok(())
    })
    .await
}

/// What users are told when a child cannot be made.
const CREATION_FAILED: &str = "TrainJobResourcesCreationFailed";
