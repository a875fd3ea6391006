//! The default configuration, of which `watch_and_config.rs` changes everything.

use anyhow::{Result, ensure};
use e2e::fixtures::finalizer::{hold, let_go};
use e2e::fixtures::status::{deleted_at, finished_at, on_time, time_until};
use e2e::fixtures::{COMPLETES, LATE, PATIENCE, RUNS, consistently};
use e2e::until::until;
use kube::ResourceExt as _;
use serde_json::json;

use super::{WINDOW, test};

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
        consistently("both are left alone", time_until(due.plus(LATE)), async || {
            for job in [&finished, &unfinished] {
                let now = tenant.jobs.get(&job.name_any()).await?;
                ensure!(now == *job, "{:?}", now.status);
            }
            Ok(())
        })
        .await?;
        let requests = tenant.world.requests(&tenant.namespace)?;
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
        tenant.has_job_set("job").await?;
        // Before it completes: the TTL counts from then on.
        hold(&tenant.job_sets, "job").await?;
        let job = tenant.completes("job").await?;
        let deleted = until("its deletion is asked for", PATIENCE, || async {
            deleted_at(&tenant.jobs.get("job").await.ok()?)
        })
        .await?;
        on_time(finished_at(&job)?.plus(2), deleted)?;
        until("the garbage collector deletes its JobSet", PATIENCE, || async {
            tenant.job_sets.get("job").await.ok()?.metadata.deletion_timestamp
        })
        .await?;
        consistently("the job is there while its JobSet is", WINDOW, async || {
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
