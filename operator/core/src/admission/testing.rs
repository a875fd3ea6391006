//! Jobs and runtimes for the tests of this module.

use serde_json::{Value, json};
use trainjob_api::{ClusterTrainingRuntime, TrainJob};

use super::FieldError;
use crate::runtime::{Runtime, draft::Draft};

/// The TrainJob `ns/tj` on the runtime of [`runtime`], with `fields` in its spec.
pub(super) fn job(fields: &Value) -> TrainJob {
    let mut job = json!({
        "metadata": {"name": "tj", "namespace": "ns", "uid": "U"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}},
    });
    job["spec"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(job).unwrap()
}

/// The ClusterTrainingRuntime `torch-distributed` with this spec.
pub(super) fn runtime(spec: &Value) -> Runtime {
    let runtime = json!({"metadata": {"name": "torch-distributed"}, "spec": spec});
    serde_json::from_value::<ClusterTrainingRuntime>(runtime).unwrap().into()
}

/// A runtime with this policy and these replicated jobs.
pub(super) fn with(policy: &Value, steps: &Value) -> Runtime {
    runtime(&json!({"mlPolicy": policy, "template": {"spec": {"replicatedJobs": steps}}}))
}

/// A replicated job with this step's label and this Pod spec.
pub(super) fn step(name: &str, ancestor: Option<&str>, pod: &Value) -> Value {
    let labels = ancestor.map(|step| json!({"trainer.kubeflow.org/trainjob-ancestor-step": step}));
    json!({"name": name, "template": {
        "metadata": {"labels": labels},
        "spec": {"template": {"spec": pod}},
    }})
}

/// The training step with its container.
pub(super) fn node() -> Value {
    step("node", Some("trainer"), &json!({"containers": [{"name": "node", "image": "i"}]}))
}

/// The texts of what a check of the patched template finds.
pub(super) fn found(
    job: &TrainJob,
    runtime: &Runtime,
    check: impl Fn(&Draft<'_>) -> Vec<FieldError>,
) -> Vec<String> {
    texts(&check(&Draft::new(job, runtime).unwrap()))
}

/// The texts of errors.
pub(super) fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}
