//! Jobs and runtimes for the tests of this module.

use serde_json::{Value, json};
use trainjob_api::{ClusterTrainingRuntime, TrainJob};

use super::{Runtime, build};

/// The TrainJob `ns/tj` on the runtime of [`runtime`], with `fields` in its spec.
pub(crate) fn job(fields: &Value) -> TrainJob {
    let mut job = json!({
        "metadata": {"name": "tj", "namespace": "ns", "uid": "U"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}},
    });
    job["spec"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(job).unwrap()
}

/// The ClusterTrainingRuntime `torch-distributed` with this spec.
pub(crate) fn runtime(spec: &Value) -> Runtime {
    let runtime = json!({"metadata": {"name": "torch-distributed"}, "spec": spec});
    serde_json::from_value::<ClusterTrainingRuntime>(runtime).unwrap().into()
}

/// A runtime of one replicated job for the trainer with one container, which has `fields` too.
pub(crate) fn torch(fields: &Value) -> Runtime {
    single("torch", fields)
}

/// The same for another framework.
pub(crate) fn single(framework: &str, fields: &Value) -> Runtime {
    let mut node = json!({"name": "node", "image": "runtime/image"});
    node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    runtime(&json!({
        "mlPolicy": {"numNodes": 1, framework: {}},
        "template": {"spec": {"replicatedJobs": [replicated_job("node", Some("trainer"), &json!([node]))]}},
    }))
}

/// A replicated job with these containers.
pub(crate) fn replicated_job(name: &str, ancestor: Option<&str>, containers: &Value) -> Value {
    let labels =
        ancestor.map(|ancestor| json!({"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}));
    json!({"name": name, "template": {
        "metadata": {"labels": labels},
        "spec": {"template": {"spec": {"containers": containers}}},
    }})
}

/// What the two make, as JSON.
pub(crate) fn built(job: &TrainJob, runtime: &Runtime) -> Value {
    serde_json::to_value(build(job, runtime).unwrap().job_set).unwrap()
}

/// JSON pointer of the first container of the `index`-th replicated job.
pub(crate) fn container(index: usize) -> String {
    format!("{}/spec/containers/0", pod(index))
}

/// JSON pointer of the Pod template of the `index`-th replicated job.
pub(crate) fn pod(index: usize) -> String {
    format!("/spec/replicatedJobs/{index}/template/spec/template")
}

/// The value of a variable of a container.
pub(crate) fn variable(container: &Value, name: &str) -> Option<String> {
    let mut env = container["env"].as_array().into_iter().flatten();
    let variable = env.find(|variable| variable["name"] == name)?;
    variable["value"].as_str().map(Into::into)
}
