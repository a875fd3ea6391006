//! Objects that have a job's names and are not the job's.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::fixtures::finalizer::{hold, let_go};
use e2e::fixtures::status::{conditions_of, finished_at};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES, COMPLETES_AFTER, PATIENCE, RUNS, consistently};
use e2e::until::{until, until_ok};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};
use trainjob_api::conditions;

use super::{WINDOW, test};

// Trap 4: a JobSet of the job's name that is not the job's.

/// A JobSet made by hand.
fn foreign_job_set(name: &str, completes_after: Option<&str>) -> Result<DynamicObject> {
    let annotations = match completes_after {
        Some(delay) => json!({COMPLETES_AFTER: delay}),
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
/// this instant. One creation may have been refused: a job can be seen before a JobSet that is
/// there for longer.
fn untouched(tenant: &Tenant<'_>, name: &str, since: jiff::Timestamp) -> Result<()> {
    let mut requests = tenant.requests_since(since)?;
    requests
        .retain(|it| it.object.resource == "jobsets" && it.object.name == name && it.is_write());
    let (refused, others): (Vec<_>, Vec<_>) =
        requests.into_iter().partition(|it| it.verb == "create" && it.code() == 409);
    ensure!(others.is_empty(), "the operator touched it: {others:#?}");
    ensure!(refused.len() <= 1, "the operator tried again and again: {refused:#?}");
    Ok(())
}

/// Waits until a job says that it waits, and why.
async fn waits(tenant: &Tenant<'_>, name: &str, reason: &str) -> Result<()> {
    let waiting = tenant.waits_because(name, reason).await?;
    tenant.tells_of(name, "TrainJobResourcesCreationFailed", &waiting.message).await?;
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
        consistently("the job waits and the foreign JobSet stays as it is", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(finished_at(&job).is_err(), "the job has finished");
            let now = substance(&tenant.job_sets.get("job").await?);
            ensure!(now == substance(&before), "it was {}, it is {now}", substance(&before));
            Ok(())
        })
        .await?;
        untouched(tenant, "job", jiff::Timestamp::MIN)?;
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
        let spec = json!({"activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 8});
        tenant.create("job", RUNS, spec).await?;
        tenant.fails_by_deadline("job").await?;
        // Nothing of its own runs, so it counts as released, and its TTL may delete it.
        tenant.gone("job").await?;
        let now = substance(&tenant.job_sets.get("job").await?);
        ensure!(now == substance(&before), "it was {}, it is {now}", substance(&before));
        ensure!(tenant.running_pods_of("job").await? == 1, "the foreign Pod does not run any more");
        untouched(tenant, "job", jiff::Timestamp::MIN)
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
        let since = jiff::Timestamp::now();

        tenant.create("job", RUNS, json!({})).await?;
        waits(tenant, "job", "JobSetConflict").await?;
        consistently("the successor waits", WINDOW, async || {
            let job = tenant.jobs.get("job").await?;
            ensure!(finished_at(&job).is_err(), "the successor has finished");
            let now = substance(&tenant.job_sets.get("job").await?);
            ensure!(now == substance(&held), "it was {}, it is {now}", substance(&held));
            Ok(())
        })
        .await?;
        untouched(tenant, "job", since)?;

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
        consistently("the ConfigMap is as it was and nothing runs", window, async || {
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
