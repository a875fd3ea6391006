//! Jobs and runtimes for the tests of this module.

use serde_json::{Value, json};
use trainjob_api::TrainJob;

use super::field::FieldError;
use crate::build::{Runtime, draft::Draft};

pub(crate) use crate::build::testing::{job, runtime};

/// A runtime with this policy and these replicated jobs.
pub(crate) fn with(policy: &Value, replicated_jobs: &Value) -> Runtime {
    runtime(&json!({"mlPolicy": policy, "template": {"spec": {"replicatedJobs": replicated_jobs}}}))
}

/// A replicated job with this ancestor label and this Pod spec.
pub(crate) fn replicated_job(name: &str, ancestor: Option<&str>, pod: &Value) -> Value {
    let labels =
        ancestor.map(|ancestor| json!({"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}));
    json!({"name": name, "template": {
        "metadata": {"labels": labels},
        "spec": {"template": {"spec": pod}},
    }})
}

/// The trainer's replicated job with its container.
pub(crate) fn node() -> Value {
    replicated_job(
        "node",
        Some("trainer"),
        &json!({"containers": [{"name": "node", "image": "i"}]}),
    )
}

/// The texts of what a check of the patched template finds.
pub(crate) fn found(
    job: &TrainJob,
    runtime: &Runtime,
    check: impl Fn(&Draft<'_>) -> Vec<FieldError>,
) -> Vec<String> {
    texts(&check(&Draft::new(job, runtime).unwrap()))
}

/// The texts of errors.
pub(crate) fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}
