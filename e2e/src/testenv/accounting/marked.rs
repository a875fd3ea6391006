//! Suspended TrainJobs whose JobSets are marked, and what somebody who updates these makes of the mark.

use anyhow::{Result, ensure};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use trainjob_api::TrainJob;
use trainjob_api::lifecycle::v1alpha1::{
    ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
};

use super::{become_older, holds, status};
use crate::testenv::fixtures::{COMPLETES_AFTER, PATIENCE, RUNS, Tenant};
use crate::testenv::until::until_ok;

/// Pods of each of these jobs.
pub const PODS: u64 = 2;
/// Where a JobSet has the metadata of its Pods.
const POD: &str = "/spec/replicatedJobs/0/template/spec/template/metadata";
/// The annotation by which a [`change`] is known.
const EDITION: &str = "e2e.trainjob.dev/edition";

/// What the Pod template of a JobSet has of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The label with the name of its TrainJob.
    pub job: Option<String>,
    /// The label with the UID of its TrainJob.
    pub uid: Option<String>,
    /// Whether it has the finalizer, once.
    pub is_held: bool,
}

impl Mark {
    /// That of this JobSet.
    #[must_use]
    pub fn of(job_set: &DynamicObject) -> Self {
        let metadata = job_set.data.pointer(POD);
        let label = |name: &str| {
            let labels = metadata.and_then(|metadata| metadata.get("labels"));
            labels.and_then(|labels| labels.get(name)?.as_str()).map(str::to_owned)
        };
        let finalizers = metadata.and_then(|metadata| metadata.get("finalizers")?.as_array());
        let ours = finalizers.into_iter().flatten().filter(|it| *it == ACCOUNTING_FINALIZER);
        Self {
            job: label(TRAIN_JOB_NAME_LABEL),
            uid: label(TRAIN_JOB_UID_LABEL),
            is_held: ours.count() == 1,
        }
    }

    /// What the JobSet of this TrainJob gets in the mode `Exact`.
    #[must_use]
    pub fn whole(job: &TrainJob) -> Self {
        Self { job: Some(job.name_any()), uid: job.uid(), is_held: true }
    }

    /// What is left of it without our labels.
    #[must_use]
    pub const fn unlabelled() -> Self {
        Self { job: None, uid: None, is_held: true }
    }
}

/// The mark that the JobSet of this TrainJob is to have, and that which it has.
pub async fn marks(tenant: &Tenant<'_>, job: &str) -> Result<(Mark, Mark)> {
    let expected = Mark::whole(&tenant.jobs.get(job).await?);
    Ok((expected, Mark::of(&tenant.has_job_set(job).await?)))
}

/// Sees that it has what it is to have.
pub async fn is_marked(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    let (expected, found) = marks(tenant, job).await?;
    ensure!(found == expected, "{job}: {found:?}, expected {expected:?}");
    Ok(())
}

/// What jobs here have: Pods with a GPU each.
fn spec(suspend: bool) -> Value {
    let gpus = json!({"limits": {"nvidia.com/gpu": "1"}});
    json!({"suspend": suspend, "trainer": {"numNodes": PODS, "resourcesPerNode": gpus}})
}

/// A job that is created suspended, so that its JobSet, which is marked, never ran.
pub async fn queued(tenant: &Tenant<'_>, job: &str) -> Result<DynamicObject> {
    queued_on(tenant, job, RUNS).await
}

/// The same on this runtime.
pub async fn queued_on(tenant: &Tenant<'_>, job: &str, runtime: &str) -> Result<DynamicObject> {
    tenant.create(job, runtime, spec(true)).await?;
    is_marked(tenant, job).await?;
    tenant.has_job_set(job).await
}

/// A job that ran and is suspended. Its Pods of then are counted, and gone.
pub async fn paused(tenant: &Tenant<'_>, job: &str) -> Result<DynamicObject> {
    tenant.create(job, RUNS, spec(false)).await?;
    let pods = until_ok(format!("{job} runs"), PATIENCE, || async {
        let pods = tenant.pods_of(job).await?;
        let phase = |pod: &k8s_openapi::api::core::v1::Pod| pod.status.clone()?.phase;
        let running = pods.iter().filter(|pod| phase(pod).as_deref() == Some("Running")).count();
        ensure!(running as u64 == PODS, "{running} run");
        Ok(pods)
    })
    .await?;
    become_older(&pods).await?;
    tenant.patch(job, &json!({"spec": {"suspend": true}})).await?;
    until_ok(format!("the Pods of {job} are counted, and gone"), PATIENCE, || async {
        let status = status(tenant, job).await?;
        ensure!(status.totals.pods.deleted == PODS, "{status:#?}");
        ensure!(!holds(&status, "Final"), "it is final");
        let left = tenant.pods_of(job).await?.len();
        ensure!(left == 0, "{left} are there");
        Ok(())
    })
    .await?;
    is_marked(tenant, job).await?;
    tenant.has_job_set(job).await
}

/// Changes a suspended job as Kueue does: its Pods get a label, an annotation and a toleration, and complete when they run.
pub async fn change(tenant: &Tenant<'_>, job: &str, labels: &Value) -> Result<()> {
    let annotations = json!({COMPLETES_AFTER: "1s", EDITION: "second"});
    let toleration = json!([{"key": "spot", "operator": "Exists"}]);
    let pod = json!({
        "metadata": {"annotations": annotations, "labels": labels},
        "spec": {"tolerations": toleration},
    });
    patch(tenant, job, &pod).await
}

/// Says this of the Pods of a job.
pub async fn patch(tenant: &Tenant<'_>, job: &str, pod: &Value) -> Result<()> {
    let jobs = json!([{"name": "node", "template": {"spec": {"template": pod}}}]);
    let patches = json!([{
        "manager": "e2e.trainjob.dev/test",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }]);
    tenant.patch(job, &json!({"spec": {"runtimePatches": patches}})).await?;
    Ok(())
}

/// Whether a JobSet has a [`change`].
#[must_use]
pub fn is_changed(job_set: &DynamicObject) -> bool {
    let annotations = job_set.data.pointer(POD).and_then(|metadata| metadata.get("annotations"));
    annotations.is_some_and(|all| all.get(EDITION) == Some(&json!("second")))
}

/// Waits until the JobSet of a job has a [`change`], and is still the one of before.
pub async fn is_updated(tenant: &Tenant<'_>, job: &str, before: &DynamicObject) -> Result<()> {
    until_ok(format!("the JobSet of {job} has the change"), PATIENCE, || async {
        let job_set = tenant.has_job_set(job).await?;
        ensure!(job_set.uid() == before.uid(), "it is another one");
        ensure!(is_changed(&job_set), "it has not: {:?}", job_set.data.pointer(POD));
        Ok(())
    })
    .await
}

/// Resumes a job.
pub async fn resume(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    tenant.patch(job, &json!({"spec": {"suspend": false}})).await?;
    Ok(())
}
