//! A job that is being deleted and kept by somebody's finalizer.

use anyhow::{Result, ensure};
use e2e::fixtures::finalizer::{hold, let_go};
use e2e::fixtures::status::{created_at, deleted_at, time_until};
use e2e::fixtures::{COMPLETES, RUNS, consistently};
use serde_json::json;
use trainjob_api::conditions::SUSPENDED;

use super::{WINDOW, test};

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
        consistently("its JobSet does not come back", time_until(due), async || {
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
        consistently("its JobSet stays suspended", WINDOW, async || {
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
