//! Objects for the tests of `plan`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};
use serde_json::{Value, json};
use trainjob_api::{
    ClusterTrainingRuntime, JobSet, TrainJob,
    jobset::JobSetView,
    time::Timestamp,
    v1alpha1::{API_VERSION, GROUP, TRAIN_JOB_KIND},
};
use trainjob_core::{build::Runtime, facts::JobSetFacts};

/// The TrainJob `ns/tj` with `fields` in its spec, just as it was stored at `created`.
pub(crate) fn train_job(fields: &Value, uid: &str, version: &str, created: i64) -> TrainJob {
    let mut job: TrainJob = serde_json::from_value(json!({
        "apiVersion": API_VERSION,
        "kind": TRAIN_JOB_KIND,
        "metadata": {"name": "tj", "namespace": "ns", "uid": uid, "resourceVersion": version},
        "spec": {"runtimeRef": {"name": "plain", "apiGroup": GROUP}},
    }))
    .unwrap();
    job.metadata.creation_timestamp = Some(Timestamp(created).into());
    set_spec(&mut job, fields);
    job
}

/// Sets `fields` in the spec of a job.
pub(crate) fn set_spec(job: &mut TrainJob, fields: &Value) {
    let mut spec = serde_json::to_value(&job.spec).unwrap();
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    job.spec = serde_json::from_value(spec).unwrap();
}

/// A patch as Kueue writes it: the Pods of the job get the label `patch`.
pub(crate) fn patches(label: &str) -> Value {
    let pod = json!({"metadata": {"labels": {"patch": label}}});
    let replicated_job = json!({"name": "node", "template": {"spec": {"template": pod}}});
    let template = json!({"spec": {"replicatedJobs": [replicated_job]}});
    json!([{"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": template}}])
}

/// The ClusterTrainingRuntime that the jobs name, with this image.
pub(crate) fn runtime(image: &str) -> Runtime {
    let containers = json!([{"name": "node", "image": image}]);
    let job = json!({
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"containers": containers}}},
    });
    let template = json!({"spec": {"replicatedJobs": [{"name": "node", "template": job}]}});
    of_spec(&json!({"mlPolicy": {"numNodes": 1}, "template": template}))
}

/// The same runtime after an edit with which no job can be built.
pub(crate) fn broken_runtime() -> Runtime {
    of_spec(&json!({"mlPolicy": {"mpi": {"mpiImplementation": ""}}}))
}

fn of_spec(spec: &Value) -> Runtime {
    let runtime = json!({"metadata": {"name": "plain"}, "spec": spec});
    serde_json::from_value::<ClusterTrainingRuntime>(runtime).unwrap().into()
}

/// A condition with this type, status and reason, and a message that no other has.
pub(crate) fn condition(kind: &str, status: &str, reason: &str, at: i64) -> Condition {
    Condition {
        type_: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message: format!("{kind} is {status}: {reason}"),
        last_transition_time: Timestamp(at).into(),
        observed_generation: None,
    }
}

/// The reference of an object to the TrainJob `ns/tj` with this UID, its controller.
pub(crate) fn owner(uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.into(),
        kind: TRAIN_JOB_KIND.into(),
        name: "tj".into(),
        uid: uid.into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The facts that a watch reads from a JobSet.
pub(crate) fn facts(job_set: &JobSet) -> JobSetFacts {
    JobSetFacts::of(&JobSetView {
        metadata: job_set.metadata.clone(),
        spec: serde_json::from_value(serde_json::to_value(&job_set.spec).unwrap()).unwrap(),
        status: job_set.status.clone().unwrap_or_default(),
    })
}
