//! Runtimes and parts of jobs, as short as they may be.

use serde_json::{Value, json};

/// A replicated job with this ancestor label, if it is one, and these Pods.
pub(crate) fn replicated_job(name: &str, ancestor: Option<&str>, pod: &Value) -> Value {
    let labels =
        ancestor.map(|ancestor| json!({"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}));
    let metadata = labels.map_or_else(|| json!({}), |labels| json!({"labels": labels}));
    json!({"name": name, "template": {"metadata": metadata, "spec": {"template": {"spec": pod}}}})
}

/// Pods with this container.
pub(crate) fn pod(container: &str) -> Value {
    json!({"restartPolicy": "Never", "containers": [{"name": container, "image": "example.com/train:1"}]})
}

/// The trainer's replicated job.
pub(crate) fn node() -> Value {
    replicated_job("node", Some("trainer"), &pod("node"))
}

/// The spec of a runtime with this policy and these jobs.
pub(crate) fn runtime(policy: &Value, replicated_jobs: &Value) -> Value {
    json!({"mlPolicy": policy, "template": {"spec": {"replicatedJobs": replicated_jobs}}})
}

/// A runtime without a framework.
pub(crate) fn plain() -> Value {
    runtime(&json!({"numNodes": 1}), &json!([node()]))
}

/// A runtime of PyTorch.
pub(crate) fn torch() -> Value {
    runtime(&json!({"numNodes": 1, "torch": {}}), &json!([node()]))
}

/// A runtime patch of this manager for the Pods of this job.
pub(crate) fn patch(manager: &str, job: &str, pod: &Value) -> Value {
    patch_of(manager, &json!({"name": job, "template": {"spec": {"template": {"spec": pod}}}}))
}

/// A runtime patch of this manager for this job.
pub(crate) fn patch_of(manager: &str, job: &Value) -> Value {
    let template = json!({"spec": {"replicatedJobs": [job]}});
    json!({"manager": manager, "trainingRuntimeSpec": {"template": template}})
}
