//! When a job is removed, and when it is not.

use anyhow::{Context, Result, bail, ensure};
use e2e::fixtures::finalizer::{hold, let_go};
use e2e::fixtures::status::{created_at, deleted_at, finished_at, now, on_time, time_until};
use e2e::fixtures::{COMPLETES, PATIENCE, RUNS, consistently};
use e2e::until::{until, until_ok};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::jiff;
use kube::ResourceExt as _;
use kube::api::{WatchEvent, WatchParams};
use serde_json::{Value, json};
use trainjob_api::conditions::{COMPLETE, SUSPENDED};
use trainjob_api::v1alpha1::train_job::JobStatus;

use super::{WINDOW, test};

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
        tenant.runs("stopped").await?;
        let kept_new = tenant.completes("kept").await?;

        let due = created_at(&stopped).plus(8).max(finished_at(&kept)?.plus(8));
        consistently("the new jobs are left alone", time_until(due.plus(2)), async || {
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
        let settled = jiff::Timestamp::now();
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

        let noted = tenant.deletion("job").await?;
        let after = tenant.requests_since(settled)?;
        let [deletion, events @ ..] = &*after else {
            bail!("it was asked for earlier: {noted:#?}")
        };
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
            let is_suspended = |it: &JobStatus| (it.suspended, it.active, it.ready) == (1, 0, 0);
            let suspended = counts.is_some_and(|all| all.iter().all(is_suspended));
            ensure!(suspended, "{counts:?}");
            Ok(job)
        })
        .await?;
        let since = jiff::Timestamp::now();
        consistently("nobody touches it", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(job.resource_version() == settled.resource_version(), "it has changed");
            let new = tenant.requests_since(since)?;
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
        tenant.deletion("job").await?;
        consistently("the one DELETE is all", WINDOW, async || {
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
