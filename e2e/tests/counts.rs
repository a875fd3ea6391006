//! Trap 13: what a cluster is left with after much has happened (`docs/semantics.md`, §7).

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{Operation, PATIENCE, POOL, RUNS, consistently};
use e2e::until::until_ok;
use kube::api::ListParams;
use serde_json::json;

/// Runs a test in a box to itself, with an operator.
async fn test(prefix: &str, body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    POOL.test(prefix, async |tenant| {
        tenant.world.start_operator().await?;
        body(tenant).await
    })
    .await
}

// Trap 13: a job that fails for hours.

/// Long enough for four tries, of which the last comes after seven seconds at most; the next comes after half a minute or more.
const HOURS: Duration = Duration::from_secs(25);

#[tokio::test]
async fn a_job_that_cannot_be_made_is_told_about_once_and_written_no_more_often() -> Result<()> {
    test("denied", async |tenant| {
        let denial = tenant.deny(Operation::Create).await?;
        tenant.create("job", RUNS, json!({})).await?;
        tenant.tells("job", "TrainJobResourcesCreationFailed").await?;
        let told = tenant.jobs.get("job").await?;
        consistently("what is known is not said again", HOURS, async || {
            let job = tenant.jobs.get("job").await?;
            let version = |job: &trainjob_api::TrainJob| job.metadata.resource_version.clone();
            ensure!(version(&job) == version(&told), "its status was written: {:?}", job.status);
            let events = tenant.events.list(&ListParams::default()).await?.items.len();
            ensure!(events == 1, "{events} events");
            Ok(())
        })
        .await?;
        let tries = tenant.requests("create", "jobsets", "")?.len()
            + tenant.requests("create", "jobsets", "job")?.len();
        ensure!((4..=5).contains(&tries), "{tries} tries in {HOURS:?}");
        denial.lift().await?;
        // The next try may come after a minute.
        until_ok("its JobSet is made", 2 * PATIENCE, || async {
            Ok(tenant.job_sets.get("job").await?)
        })
        .await?;
        tenant.runs("job").await?;
        Ok(())
    })
    .await
}
