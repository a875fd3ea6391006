//! Traps that others fell into (`docs/semantics.md`, last chapter), on a real control plane with
//! the real operator. Those that take a restart of the operator are in `traps_crash.rs`.
//!
//! All tests share one box and one operator; each has a namespace of its own.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use e2e::fixtures::tenant::{
    Tenant, conditions_of, created_at, deleted_at, finished_at, hold, is_failed_by_deadline,
    let_go, now, on_time, time_until,
};
use e2e::fixtures::{COMPLETES, LATE, Operation, PATIENCE, RUNS, STUBBORN, Verdict, World, stays};
use e2e::until::{until, until_ok};
use futures::{StreamExt, TryStreamExt, future};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{
    DeleteParams, DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use trainjob_api::conditions::{self, COMPLETE, SUSPENDED};

/// How long a test looks on to see that nothing happens: several tries of the operator, whose
/// retries of a release are at most five seconds apart.
const WINDOW: Duration = Duration::from_secs(5);

async fn test(prefix: &str, story: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    static SHARED: OnceCell<World> = OnceCell::const_new();
    SHARED.get_or_try_init(World::start).await?.test(prefix, story).await
}

// Trap 1: the deadline's deletion of the JobSet fails.

#[tokio::test]
async fn a_jobset_deletion_denied_by_admission_is_retried_until_the_job_is_released() -> Result<()>
{
    test("denied", async |tenant| {
        let denial = tenant.deny(Operation::Delete).await?;
        let spec = json!({"activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 0});
        tenant.create("job", RUNS, spec).await?;
        tenant.runs("job").await?;
        tenant.fails_by_deadline("job").await?;
        tenant.tells("job", "DeadlineExceeded").await?;
        let note = tenant.tells("job", "ReleaseFailed").await?;
        ensure!(note.contains("denied by a test"), "the event does not say why: {note}");

        stays("the unreleased job outlives its TTL", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(deleted_at(&job).is_none(), "it is being deleted");
            ensure!(tenant.running_pods_of("job").await? == 1, "its Pod does not run");
            let told = tenant.told("job", "ReleaseFailed").await?.len();
            ensure!(told == 1, "the same failure was told {told} times");
            Ok(())
        })
        .await?;

        denial.lift().await?;
        tenant.gone("job").await?;
        tenant.released("job").await?;
        let tries = tenant.requests("delete", "jobsets", "job")?;
        ensure!((3..40).contains(&tries.len()), "{} tries in about ten seconds", tries.len());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_jobset_deletion_refused_with_whatever_code_is_tried_again_until_it_succeeds()
-> Result<()> {
    test("refused", async |tenant| {
        // Each is refused a few times, with the code its name ends in.
        let door = tenant
            .door(10, |name, time| match name.rsplit('-').next().map(str::parse) {
                Some(Ok(code)) if time <= 4 => Verdict::Refuse(code),
                _ => Verdict::Allow,
            })
            .await?;
        let names = ["by-403", "by-409", "by-422", "by-429", "by-500", "by-503", "by-504"];
        future::try_join_all(names.map(async |name| {
            tenant.create(name, RUNS, json!({"activeDeadlineSeconds": 3})).await?;
            tenant.fails_by_deadline(name).await?;
            tenant.released(name).await?;
            let asked = door.asked(name);
            ensure!(asked == 5, "{name}: {asked} tries, where the fifth was let through");
            ensure!(is_failed_by_deadline(&tenant.jobs.get(name).await?), "{name} has changed");
            anyhow::Ok(())
        }))
        .await?;
        for name in ["by-403", "by-409", "by-422", "by-500", "by-503", "by-504"] {
            let told = tenant.told(name, "ReleaseFailed").await?.len();
            ensure!(told == 1, "{name}: told {told} times");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_jobset_deletion_behind_a_dead_webhook_is_retried_until_the_job_is_released() -> Result<()>
{
    test("dead", async |tenant| {
        let door = tenant.dead_door().await?;
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 3})).await?;
        tenant.fails_by_deadline("job").await?;
        let note = tenant.tells("job", "ReleaseFailed").await?;
        ensure!(note.contains("door.e2e.trainjob.dev"), "which webhook it was: {note}");
        ensure!(tenant.running_pods_of("job").await? == 1, "its Pod does not run");
        tenant.open(door).await?;
        tenant.released("job").await
    })
    .await
}

#[tokio::test]
async fn a_jobset_deletion_that_gets_no_answer_is_given_up_and_tried_again() -> Result<()> {
    test("hanging", async |tenant| {
        // Longer than the operator waits for any answer; the API server would wait on.
        let seconds = 30;
        let hang_once = |_: &str, time| if time == 1 { Verdict::Hang } else { Verdict::Allow };
        let door = tenant.door(seconds, hang_once).await?;
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 3})).await?;
        let job = tenant.fails_by_deadline("job").await?;
        until("the operator was left waiting", PATIENCE, || async {
            (door.asked("job") == 1).then_some(())
        })
        .await?;
        tenant.released("job").await?;
        ensure!(door.asked("job") == 2, "asked {} times", door.asked("job"));
        let took = now().since(finished_at(&job)?);
        ensure!(took < i64::from(seconds), "released only when the API server gave up: {took} s");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_webhook_that_times_out_does_not_keep_a_job_from_its_release() -> Result<()> {
    test("slow", async |tenant| {
        let hang_thrice = |_: &str, time| if time <= 3 { Verdict::Hang } else { Verdict::Allow };
        let door = tenant.door(1, hang_thrice).await?;
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 3})).await?;
        tenant.fails_by_deadline("job").await?;
        tenant.released("job").await?;
        ensure!(door.asked("job") == 4, "asked {} times", door.asked("job"));
        let told = tenant.told("job", "ReleaseFailed").await?.len();
        ensure!(told == 1, "told {told} times");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_that_others_change_all_the_time_is_still_stopped_by_its_deadline() -> Result<()> {
    test("busy", async |tenant| {
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 5})).await?;
        tenant.has_job_set("job").await?;
        let adversary = async {
            for change in 0_u64.. {
                let labels = json!({"metadata": {"labels": {"change": change.to_string()}}});
                let (how, patch) = (PatchParams::default(), Patch::Merge(&labels));
                let (job, job_set) = tokio::join!(
                    tenant.patch("job", &labels),
                    tenant.job_sets.patch("job", &how, &patch),
                );
                job?;
                // It may be gone.
                job_set.ok();
            }
            anyhow::Ok(())
        };
        let end = async {
            tenant.fails_by_deadline("job").await?;
            tenant.released("job").await
        };
        tokio::select! {
            outcome = adversary => outcome.context("the adversary gave up"),
            outcome = end => outcome,
        }?;
        let writes = tenant.requests("patch", "trainjobs", "job")?;
        let conflicts = writes.iter().filter(|write| write.code() == 409).count();
        let stored = writes.iter().filter(|write| write.code() == 200).count();
        ensure!(stored <= 20, "{stored} status writes, and {conflicts} conflicts");
        Ok(())
    })
    .await
}

// Trap 4: a JobSet of the job's name that is not the job's.

/// A JobSet made by hand.
fn foreign_job_set(name: &str, completes_after: Option<&str>) -> Result<DynamicObject> {
    let annotations = match completes_after {
        Some(delay) => json!({"pod-complete.stage.kwok.x-k8s.io/delay": delay}),
        None => json!({}),
    };
    let pod = json!({"restartPolicy": "Never", "terminationGracePeriodSeconds": 3,
        "containers": [{"name": "a", "image": "a"}]});
    Ok(serde_json::from_value(json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "labels": {"made-by": "hand"}},
        "spec": {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": {
            "metadata": {"annotations": annotations}, "spec": pod,
        }}}}]},
    }))?)
}

/// What of an object the operator might have changed.
fn substance(object: &DynamicObject) -> Value {
    let meta = &object.metadata;
    json!([
        meta.uid,
        meta.labels,
        meta.annotations,
        meta.owner_references,
        meta.deletion_timestamp,
        object.data.get("spec"),
    ])
}

/// Sees that the operator did not ask to change the JobSet of this name, nor to create another, since
/// it had made so many requests.
fn untouched(tenant: &Tenant<'_>, name: &str, since: usize) -> Result<()> {
    let mut requests = tenant.requests_after(since)?;
    requests
        .retain(|it| it.object.resource == "jobsets" && it.object.name == name && it.is_write());
    ensure!(requests.is_empty(), "the operator touched it: {requests:#?}");
    Ok(())
}

/// Waits until a job says that it waits, and why.
async fn waits(tenant: &Tenant<'_>, name: &str, reason: &str) -> Result<()> {
    let job = tenant.becomes(name, "Waiting").await?;
    let waiting = conditions::find_true(conditions_of(&job), "Waiting").context("it waits")?;
    ensure!(waiting.reason == reason, "it waits for {}: {}", waiting.reason, waiting.message);
    let note = tenant.tells(name, "TrainJobResourcesCreationFailed").await?;
    ensure!(note.contains(&waiting.message), "condition and event differ: {note}");
    Ok(())
}

#[tokio::test]
async fn a_foreign_jobset_is_left_alone_and_does_not_finish_the_job_which_waits_until_it_is_gone()
-> Result<()> {
    test("foreign", async |tenant| {
        let foreign = foreign_job_set("job", Some("3s"))?;
        let before = tenant.job_sets.create(&PostParams::default(), &foreign).await?;
        tenant.create("job", RUNS, json!({})).await?;
        waits(tenant, "job", "JobSetConflict").await?;
        until_ok("the foreign JobSet completes", PATIENCE, || async {
            let state = tenant.job_sets.get("job").await?.data;
            let state = state.pointer("/status/terminalState").cloned();
            ensure!(state == Some(json!("Completed")), "it is {state:?}");
            Ok(())
        })
        .await?;
        stays("the job waits and the foreign JobSet stays as it is", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(finished_at(&job).is_err(), "the job has finished");
            let now = substance(&tenant.job_sets.get("job").await?);
            ensure!(now == substance(&before), "it was {}, it is {now}", substance(&before));
            Ok(())
        })
        .await?;
        untouched(tenant, "job", 0)?;
        let told = tenant.told("job", "TrainJobResourcesCreationFailed").await?.len();
        ensure!(told == 1, "told {told} times");

        tenant.delete_job_set("job").await?;
        tenant.has_job_set("job").await?;
        until_ok("the job waits no more", PATIENCE, || async {
            let job = tenant.jobs.get("job").await?;
            let waiting = conditions::find(conditions_of(&job), "Waiting");
            ensure!(waiting.is_none(), "{waiting:?}");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_deadline_fails_its_job_and_leaves_a_foreign_jobset_and_its_pods_alone() -> Result<()> {
    test("alien", async |tenant| {
        let foreign = foreign_job_set("job", None)?;
        let before = tenant.job_sets.create(&PostParams::default(), &foreign).await?;
        tenant.runs("job").await?;
        let spec = json!({"activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 1});
        tenant.create("job", RUNS, spec).await?;
        tenant.fails_by_deadline("job").await?;
        // Nothing of its own runs, so it counts as released, and its TTL may delete it.
        tenant.gone("job").await?;
        let now = substance(&tenant.job_sets.get("job").await?);
        ensure!(now == substance(&before), "it was {}, it is {now}", substance(&before));
        ensure!(tenant.running_pods_of("job").await? == 1, "the foreign Pod does not run any more");
        untouched(tenant, "job", 0)
    })
    .await
}

#[tokio::test]
async fn the_completed_jobset_of_a_predecessor_does_not_finish_its_successor() -> Result<()> {
    test("predecessor", async |tenant| {
        tenant.create("job", COMPLETES, json!({})).await?;
        tenant.completes("job").await?;
        hold(&tenant.job_sets, "job").await?;
        tenant.delete("job").await?;
        tenant.gone("job").await?;
        until("its JobSet is being deleted, and held", PATIENCE, || async {
            let job_set = tenant.job_sets.get("job").await.ok()?;
            job_set.metadata.deletion_timestamp.map(|_| ())
        })
        .await?;
        let held = tenant.job_sets.get("job").await?;
        let known = tenant.requests_after(0)?.len();

        tenant.create("job", RUNS, json!({})).await?;
        waits(tenant, "job", "JobSetConflict").await?;
        stays("the successor waits", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(finished_at(&job).is_err(), "the successor has finished");
            let now = substance(&tenant.job_sets.get("job").await?);
            ensure!(now == substance(&held), "it was {}, it is {now}", substance(&held));
            Ok(())
        })
        .await?;
        untouched(tenant, "job", known)?;

        let_go(&tenant.job_sets, "job").await?;
        tenant.has_job_set("job").await?;
        tenant.runs("job").await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_foreign_configmap_in_place_of_the_snapshot_is_left_alone_and_waited_for() -> Result<()> {
    test("snapshot", async |tenant| {
        let name = "job-runtime-snapshot";
        let foreign: ConfigMap = serde_json::from_value(json!({
            "metadata": {"name": name},
            "data": {"runtime": "somebody else's"},
        }))?;
        let before = tenant.config_maps.create(&PostParams::default(), &foreign).await?;
        tenant.create("job", RUNS, json!({})).await?;
        waits(tenant, "job", "SnapshotConflict").await?;
        // Nothing watches ConfigMaps: what was looked at for longer is looked at more seldom.
        let window = Duration::from_secs(2);
        stays("the ConfigMap is as it was and nothing runs", window, async || {
            let now = tenant.config_maps.get(name).await?;
            ensure!(now == before, "it was {before:?}, it is {now:?}");
            ensure!(tenant.job_sets.get_opt("job").await?.is_none(), "there is a JobSet");
            Ok(())
        })
        .await?;
        tenant.config_maps.delete(name, &DeleteParams::default()).await?;
        tenant.has_job_set("job").await?;
        Ok(())
    })
    .await
}

// Trap 5: a TrainJob that is being deleted and kept by somebody's finalizer.

#[tokio::test]
async fn a_job_that_is_being_deleted_gets_no_new_jobset_and_is_still_stopped_by_its_deadline()
-> Result<()> {
    test("going", async |tenant| {
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 8})).await?;
        hold(&tenant.jobs, "job").await?;
        tenant.has_job_set("job").await?;
        tenant.delete("job").await?;
        tenant.delete_job_set("job").await?;
        let job = tenant.poke("job", 20).await?;
        ensure!(deleted_at(&job).is_some(), "it is not being deleted");
        let due = created_at(&job).plus(8);
        stays("its JobSet does not come back", time_until(due), async || {
            ensure!(tenant.job_sets.get_opt("job").await?.is_none(), "it is back");
            Ok(())
        })
        .await?;
        tenant.fails_by_deadline("job").await?;
        ensure!(tenant.job_sets.get_opt("job").await?.is_none(), "the JobSet is back");
        let_go(&tenant.jobs, "job").await?;
        tenant.gone("job").await
    })
    .await
}

#[tokio::test]
async fn a_suspended_job_that_is_being_deleted_is_not_resumed() -> Result<()> {
    test("asleep", async |tenant| {
        tenant.create("job", RUNS, json!({"suspend": true})).await?;
        hold(&tenant.jobs, "job").await?;
        tenant.becomes("job", SUSPENDED).await?;
        tenant.has_job_set("job").await?;
        tenant.delete("job").await?;
        tenant.patch("job", &json!({"spec": {"suspend": false}})).await?;
        tenant.poke("job", 20).await?;
        stays("its JobSet stays suspended", WINDOW, async || {
            let job_set = tenant.job_sets.get("job").await?;
            let suspended = job_set.data.pointer("/spec/suspend");
            ensure!(suspended == Some(&json!(true)), "suspend is {suspended:?}");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_job_that_is_being_deleted_still_shows_how_it_ended() -> Result<()> {
    test("ending", async |tenant| {
        tenant.create("job", COMPLETES, json!({})).await?;
        hold(&tenant.jobs, "job").await?;
        tenant.has_job_set("job").await?;
        tenant.delete("job").await?;
        let job = tenant.completes("job").await?;
        ensure!(deleted_at(&job).is_some(), "it is not being deleted");
        Ok(())
    })
    .await
}

// Trap 6: a job of the same name, made before the timer of the old one fires.

#[tokio::test]
async fn the_timers_of_a_deleted_job_do_nothing_to_a_new_one_of_its_name() -> Result<()> {
    test("namesake", async |tenant| {
        let old = async |name: &str, runtime: &str, spec: Value| {
            tenant.create(name, runtime, spec).await?;
            let job = match runtime {
                RUNS => tenant.runs(name).await.map(|_| tenant.jobs.get(name)),
                _ => tenant.completes(name).await.map(|_| tenant.jobs.get(name)),
            }?
            .await?;
            tenant.delete(name).await?;
            tenant.gone(name).await?;
            anyhow::Ok(job)
        };
        let (stopped, kept) = tokio::try_join!(
            old("stopped", RUNS, json!({"activeDeadlineSeconds": 8})),
            old("kept", COMPLETES, json!({"ttlSecondsAfterFinished": 8})),
        )?;
        tenant.create("stopped", RUNS, json!({"activeDeadlineSeconds": 3_600})).await?;
        tenant.create("kept", COMPLETES, json!({"ttlSecondsAfterFinished": 3_600})).await?;
        tokio::try_join!(tenant.runs("stopped"), tenant.runs("kept"))?;
        let kept_new = tenant.completes("kept").await?;

        let due = created_at(&stopped).plus(8).max(finished_at(&kept)?.plus(8));
        stays("the new jobs are left alone", time_until(due.plus(2)), async || {
            let job = tenant.jobs.get("stopped").await?;
            ensure!(finished_at(&job).is_err(), "the old deadline stopped the new job");
            let job = tenant.jobs.get("kept").await?;
            ensure!(job.uid() == kept_new.uid() && deleted_at(&job).is_none(), "the old TTL");
            Ok(())
        })
        .await
    })
    .await
}

// Trap 8: nothing in the cluster changes between the end of a job and its deletion.

#[tokio::test]
async fn a_job_is_deleted_on_time_although_nothing_happens_before() -> Result<()> {
    test("quiet", async |tenant| {
        let ttl = 12;
        tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": ttl})).await?;
        let job = tenant.completes("job").await?;
        let due = finished_at(&job)?.plus(ttl);
        let settled = tenant.requests_after(0)?.len();
        let version = job.resource_version().unwrap_or_default();
        let only = WatchParams::default().fields("metadata.name=job").disable_bookmarks();
        let mut news = tenant.jobs.watch(&only, &version).await?.boxed();
        let first = news.try_next().await?.context("the watch ended before the deletion")?;
        let at = now();
        let deletion = match &first {
            WatchEvent::Modified(job) => deleted_at(job),
            WatchEvent::Deleted(_) => Some(at),
            _ => None,
        };
        let deletion = deletion.with_context(|| format!("something else happened: {first:?}"))?;
        on_time(due, deletion)?;
        tenant.gone("job").await?;

        let after = tenant.requests_after(settled)?;
        let [deletion, events @ ..] = &*after else { bail!("no DELETE was noted") };
        ensure!(deletion.verb == "delete", "before the deletion: {deletion:#?}");
        let preconditions = &deletion.sent["preconditions"];
        let expected = json!({"uid": job.uid(), "resourceVersion": version});
        ensure!(*preconditions == expected, "{preconditions}, not {expected}");
        ensure!(events.iter().all(|it| it.object.resource == "events"), "after it: {events:#?}");
        Ok(())
    })
    .await
}

// Trap 10: a TTL on a job that is not finished.

#[tokio::test]
async fn a_preempted_job_with_a_ttl_is_left_in_peace() -> Result<()> {
    test("preempted", async |tenant| {
        let spec = json!({"ttlSecondsAfterFinished": 1});
        tenant.create("job", RUNS, spec).await?;
        tenant.runs("job").await?;
        tenant.patch("job", &json!({"spec": {"suspend": true}})).await?;
        tenant.becomes("job", SUSPENDED).await?;
        let settled = until_ok("its counts are settled", PATIENCE, || async {
            ensure!(tenant.running_pods_of("job").await? == 0, "Pods run");
            let job = tenant.jobs.get("job").await?;
            let counts = job.status.as_ref().and_then(|status| status.jobs_status.as_ref());
            let suspended = counts.is_some_and(|all| all.iter().all(|it| it.suspended == 1));
            ensure!(suspended, "{counts:?}");
            Ok(job)
        })
        .await?;
        let known = tenant.requests_after(0)?.len();
        stays("nobody touches it", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(job.resource_version() == settled.resource_version(), "it has changed");
            let new = tenant.requests_after(known)?;
            ensure!(new.is_empty(), "the operator asked for {new:#?}");
            Ok(())
        })
        .await?;
        let log = tenant.world.logs()?;
        let troubles = |line: &&str| {
            line.contains(&tenant.namespace) && (line.contains("WARN") || line.contains("ERROR"))
        };
        let troubles: Vec<_> = log.lines().filter(troubles).collect();
        ensure!(troubles.is_empty(), "the log complains: {troubles:#?}");
        Ok(())
    })
    .await
}

// Trap 11: a finalizer of somebody else on a job whose TTL has passed.

#[tokio::test]
async fn a_job_that_a_finalizer_keeps_is_deleted_once_and_not_again() -> Result<()> {
    test("kept", async |tenant| {
        tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": 2})).await?;
        hold(&tenant.jobs, "job").await?;
        let job = tenant.becomes("job", COMPLETE).await?;
        let due = finished_at(&job)?.plus(2);
        let deleted = until("its deletion is asked for", PATIENCE, || async {
            deleted_at(&tenant.jobs.get("job").await.ok()?)
        })
        .await?;
        on_time(due, deleted)?;
        tenant.poke("job", 20).await?;
        stays("the one DELETE is all", WINDOW, async || {
            let again = deleted_at(&tenant.jobs.get("job").await?);
            ensure!(again == Some(deleted), "it was deleted again, at {again:?}");
            let requests = tenant.requests("delete", "trainjobs", "job")?;
            ensure!(requests.len() == 1, "{} DELETEs: {requests:#?}", requests.len());
            Ok(())
        })
        .await?;
        let_go(&tenant.jobs, "job").await?;
        tenant.gone("job").await
    })
    .await
}

// Trap 17: the JobSet is gone and its Pods are not.

#[tokio::test]
async fn a_job_whose_jobset_went_before_its_pods_is_not_called_released_while_one_runs()
-> Result<()> {
    test("orphans", async |tenant| {
        let spec = json!({"activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 1});
        tenant.create("job", STUBBORN, spec).await?;
        tenant.runs("job").await?;
        let job = tenant.fails_by_deadline("job").await?;
        // Whoever does this takes the JobSet away from its Jobs and Pods.
        tenant.job_sets.delete("job", &DeleteParams::background()).await?;
        tenant.job_set_gone("job").await?;
        ensure!(tenant.running_pods_of("job").await? == 1, "the Pod went too fast for this test");
        let last_seen = until("the Pod is gone", PATIENCE, || async {
            let kept = tenant.jobs.get_opt("job").await.ok()?.map(|job| deleted_at(&job));
            match (tenant.running_pods_of("job").await.ok()?, kept) {
                (0, _) => Some(Ok(now())),
                (_, Some(None)) => None,
                // It runs, and ran when the job was looked at.
                _ => Some(Err(anyhow!("the job was deleted while its Pod ran"))),
            }
        })
        .await??;
        ensure!(last_seen.since(finished_at(&job)?) > 2, "the Pod went before the TTL had passed");
        tenant.gone("job").await
    })
    .await
}

// Trap 18: a job that is kept by somebody's finalizer while its Pods run.

#[tokio::test]
async fn a_job_that_a_finalizer_keeps_is_still_stopped_by_its_deadline_and_released() -> Result<()>
{
    test("undead", async |tenant| {
        let spec = json!({"activeDeadlineSeconds": 6, "ttlSecondsAfterFinished": 1});
        tenant.create("job", RUNS, spec).await?;
        hold(&tenant.jobs, "job").await?;
        tenant.runs("job").await?;
        tenant.delete("job").await?;
        let job = tenant.fails_by_deadline("job").await?;
        ensure!(deleted_at(&job).is_some(), "it is not being deleted");
        tenant.released("job").await?;
        stays("its TTL does not delete it again", Duration::from_secs(3), async || {
            let deletions = tenant.requests("delete", "trainjobs", "job")?;
            ensure!(deletions.is_empty(), "it was deleted already: {deletions:#?}");
            Ok(())
        })
        .await?;
        let_go(&tenant.jobs, "job").await?;
        tenant.gone("job").await
    })
    .await
}

// The defaults, which `watch_and_config.rs` changes.

#[tokio::test]
async fn by_default_the_time_a_job_is_suspended_counts_for_its_deadline() -> Result<()> {
    test("creation", async |tenant| {
        let spec = json!({"suspend": true, "activeDeadlineSeconds": 4});
        tenant.create("job", RUNS, spec).await?;
        tenant.fails_by_deadline("job").await?;
        tenant.released("job").await
    })
    .await
}

#[tokio::test]
async fn a_job_that_somebody_else_manages_is_never_touched() -> Result<()> {
    test("elsewhere", async |tenant| {
        let (finished, unfinished) = tenant.create_elsewhere().await?;
        let due = finished_at(&finished)?.plus(1);
        stays("both are left alone", time_until(due.plus(LATE)), async || {
            for job in [&finished, &unfinished] {
                let now = tenant.jobs.get(&job.name_any()).await?;
                ensure!(now == *job, "{:?}", now.status);
            }
            Ok(())
        })
        .await?;
        let requests = tenant.requests_after(0)?;
        ensure!(requests.is_empty(), "the operator asked for {requests:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn by_default_a_job_that_its_ttl_deletes_stays_visible_until_its_dependents_are_gone()
-> Result<()> {
    test("foreground", async |tenant| {
        tenant.create("job", COMPLETES, json!({"ttlSecondsAfterFinished": 2})).await?;
        let job = tenant.completes("job").await?;
        hold(&tenant.job_sets, "job").await?;
        let deleted = until("its deletion is asked for", PATIENCE, || async {
            deleted_at(&tenant.jobs.get("job").await.ok()?)
        })
        .await?;
        on_time(finished_at(&job)?.plus(2), deleted)?;
        until("the garbage collector deletes its JobSet", PATIENCE, || async {
            tenant.job_sets.get("job").await.ok()?.metadata.deletion_timestamp
        })
        .await?;
        stays("the job is there while its JobSet is", WINDOW, async || {
            ensure!(tenant.jobs.get_opt("job").await?.is_some(), "it went first");
            Ok(())
        })
        .await?;
        let_go(&tenant.job_sets, "job").await?;
        tenant.gone("job").await?;
        tenant.job_set_gone("job").await
    })
    .await
}
