//! Runtimes and parts of jobs, as short as they may be.

use serde_json::{Value, json};

/// A replicated job with this step's label, if it is one, and these Pods.
pub(crate) fn step(name: &str, ancestor: Option<&str>, pod: &Value) -> Value {
    let labels = ancestor.map(|step| json!({"trainer.kubeflow.org/trainjob-ancestor-step": step}));
    let metadata = labels.map_or_else(|| json!({}), |labels| json!({"labels": labels}));
    json!({"name": name, "template": {"metadata": metadata, "spec": {"template": {"spec": pod}}}})
}

/// Pods with this container.
pub(crate) fn pod(container: &str) -> Value {
    json!({"restartPolicy": "Never", "containers": [{"name": container, "image": "example.com/train:1"}]})
}

/// The training step.
pub(crate) fn node() -> Value {
    step("node", Some("trainer"), &pod("node"))
}

/// The spec of a runtime with this policy and these jobs.
pub(crate) fn runtime(policy: &Value, steps: &Value) -> Value {
    json!({"mlPolicy": policy, "template": {"spec": {"replicatedJobs": steps}}})
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
