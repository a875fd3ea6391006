//! Holds: the annotation `lifecycle.trainjob.dev/hold-until` keeps a finished job beyond its TTL
//! (`docs/semantics.md`, T11).

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::{deleted_at, finished_at, now, on_time, time_until};
use e2e::fixtures::{COMPLETES, LATE, Tenant, consistently};
use serde_json::{Value, json};
use trainjob_api::TrainJob;
use trainjob_api::lifecycle::v1alpha1::HOLD_ANNOTATION;
use trainjob_api::time::Timestamp;

use super::test;

/// So many seconds before an instant a test ceases to see that nothing happens before it: the last look takes its time.
const MARGIN: i64 = 3;

/// Gives a job this hold; `null` removes it.
async fn hold(tenant: &Tenant<'_>, name: &str, text: Value) -> Result<TrainJob> {
    tenant.patch(name, &json!({"metadata": {"annotations": {HOLD_ANNOTATION: text}}})).await
}

/// A job with a TTL of a second that has this hold before it finishes.
async fn held(tenant: &Tenant<'_>, name: &str, text: &str) -> Result<TrainJob> {
    tenant.create(name, COMPLETES, json!({"ttlSecondsAfterFinished": 1, "suspend": true})).await?;
    hold(tenant, name, json!(text)).await?;
    tenant.patch(name, &json!({"spec": {"suspend": false}})).await?;
    tenant.completes(name).await
}

/// Sees that nobody asks for the deletion of a job until this instant.
async fn stays(tenant: &Tenant<'_>, name: &str, until: Timestamp) -> Result<()> {
    consistently(&format!("{name} stays"), time_until(until), async || {
        ensure!(deleted_at(&tenant.jobs.get(name).await?).is_none(), "it is being deleted");
        Ok(())
    })
    .await?;
    let asked = tenant.requests("delete", "trainjobs", name)?;
    ensure!(asked.is_empty(), "{asked:#?}");
    Ok(())
}

/// Waits until a job is gone, and sees that this was not asked for before `due`.
async fn goes(tenant: &Tenant<'_>, job: &TrainJob, due: Timestamp) -> Result<()> {
    let name = job.metadata.name.as_deref().context("no name")?;
    tenant.gone(name).await?;
    let deletion = tenant.deletion(name).await?;
    on_time(due, Timestamp(deletion.at.0.as_second()))?;
    let names = |field| deletion.sent.pointer(field).and_then(Value::as_str);
    ensure!(names("/preconditions/uid") == job.metadata.uid.as_deref(), "{deletion:#?}");
    ensure!(names("/preconditions/resourceVersion").is_some(), "{deletion:#?}");
    Ok(())
}

#[tokio::test]
async fn a_held_job_outlives_its_ttl_and_goes_when_the_hold_ends() -> Result<()> {
    test("held", async |tenant| {
        let until = now().plus(30);
        let job = held(tenant, "job", &until.to_string()).await?;
        ensure!(finished_at(&job)?.plus(1 + LATE) < until, "it finished too late for this test");
        let note = tenant.tells("job", "Held").await?;
        ensure!(note.contains(&format!("held until {until}")), "{note}");
        stays(tenant, "job", until.plus(-MARGIN)).await?;
        goes(tenant, &job, until).await?;
        ensure!(tenant.told("job", "Held").await?.len() == 1, "told more than once");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_goes_when_its_hold_is_removed_and_stays_longer_when_it_is_moved() -> Result<()> {
    test("unheld", async |tenant| {
        let soon = now().plus(30);
        let text = soon.to_string();
        let (removed, moved) = tokio::try_join!(
            held(tenant, "removed", "2100-01-01T00:00:00Z"),
            held(tenant, "moved", &text),
        )?;
        let capped = tenant.tells("removed", "HoldCapped").await?;
        ensure!(capped.contains("lifecycle.maximumHoldSeconds"), "{capped}");
        tenant.tells("moved", "Held").await?;
        let later = soon.plus(6);
        hold(tenant, "moved", json!(later.to_string())).await?;

        stays(tenant, "removed", now().plus(LATE)).await?;
        let at = now();
        hold(tenant, "removed", json!(null)).await?;
        goes(tenant, &removed, at).await?;

        stays(tenant, "moved", later.plus(-MARGIN)).await?;
        goes(tenant, &moved, later).await?;
        let told = tenant.told("moved", "Held").await?;
        ensure!(told.len() == 2, "one event for each hold: {told:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_hold_that_cannot_be_read_keeps_the_job_and_is_told_of_until_it_is_corrected()
-> Result<()> {
    test("unreadable", async |tenant| {
        let job = held(tenant, "job", "tomorrow").await?;
        let note = tenant.tells("job", "HoldInvalid").await?;
        ensure!(note.contains("is no RFC 3339 time"), "{note}");
        tenant.poke("job", 10).await?;
        stays(tenant, "job", now().plus(LATE)).await?;
        ensure!(tenant.told("job", "HoldInvalid").await?.len() == 1, "told more than once");
        let until = now().plus(3);
        hold(tenant, "job", json!(until.to_string())).await?;
        goes(tenant, &job, until).await
    })
    .await
}
