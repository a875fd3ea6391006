//! What is stored in a box of the retention engine.

#![expect(clippy::indexing_slicing, reason = "the objects that are indexed are written here")]

use serde_json::{Value, json};

/// A kind that policies are about: group, version, kind, and plural.
pub type Kind = (&'static str, &'static str, &'static str, &'static str);

/// The kinds that policies are about in a box in which nothing acts.
pub const KINDS: [Kind; 6] = [
    ("batch", "v1", "Job", "jobs"),
    ("", "v1", "Pod", "pods"),
    ("e2e.trainjob.dev", "v1", "Run", "runs"),
    ("argoproj.io", "v1alpha1", "Workflow", "workflows"),
    ("kubeflow.org", "v1", "MPIJob", "mpijobs"),
    ("ray.io", "v1", "RayJob", "rayjobs"),
];

/// The kinds that policies are about in a box with Kueue.
pub const QUEUED: [Kind; 3] = [
    ("batch", "v1", "Job", "jobs"),
    ("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs"),
    ("kueue.x-k8s.io", "v1beta2", "Workload", "workloads"),
];

/// A kind as a target in the values of the chart, with the Pods and owners that policies of tests are about.
pub(super) fn target((group, _, kind, plural): &Kind) -> Value {
    let owner = |group: &str, plural: &str| json!({"apiGroup": group, "resource": plural});
    let mut target = json!({"apiGroup": group, "kind": kind, "resource": plural});
    match *kind {
        "Job" => {
            target["pods"] = json!(true);
            target["owners"] = json!([owner("batch", "jobs")]);
        }
        "Workload" => {
            target["ownerDelete"] = json!(true);
            let (job, train_job) =
                (owner("batch", "jobs"), owner("trainer.kubeflow.org", "trainjobs"));
            target["owners"] = json!([job, train_job]);
        }
        _ => {}
    }
    target
}

/// The definitions of those of [`KINDS`] that Kubernetes does not have. Objects of them are stored with any status.
pub(super) fn definitions() -> Vec<Value> {
    let own = KINDS.iter().filter(|(group, ..)| group.contains('.'));
    own.map(|(group, version, kind, plural)| definition(group, version, kind, plural)).collect()
}

/// The definition of a kind whose objects are stored with whatever is in them.
#[must_use]
pub fn definition(group: &str, version: &str, kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

/// A policy in Enforce with the rule `action` for all objects of a kind of [`KINDS`] or [`QUEUED`]. Nobody collects garbage, so
/// nobody would end a deletion in the foreground.
#[must_use]
pub fn policy(name: &str, kind: &str, action: &Value) -> Value {
    let mut kinds = KINDS.iter().chain(&QUEUED);
    let group = kinds.find(|(_, _, it, _)| *it == kind).map_or("", |(group, ..)| *group);
    let mut policy = json!({
        "apiVersion": "lifecycle.trainjob.dev/v1alpha1",
        "kind": "RetentionPolicy",
        "metadata": {"name": name},
        "spec": {
            "target": {"apiGroup": group, "kind": kind},
            "mode": "Enforce",
            "propagation": "Background",
            "deletesPerSecond": 0,
            "rules": [{"name": "all", "action": action}],
        },
    });
    if kind == "Run" {
        policy["spec"]["finished"] = json!({
            "phase": {
                "path": "status.phase",
                "outcomes": {"Succeeded": ["Succeeded"], "Failed": ["Failed"]},
            },
            "timePath": "status.finishedAt",
        });
    }
    policy
}

/// A Job that nobody runs.
#[must_use]
pub fn job(name: &str) -> Value {
    let container = json!({"name": "a", "image": "none"});
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }},
    })
}

/// A Run with this status.
#[must_use]
pub fn run(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "e2e.trainjob.dev/v1", "kind": "Run",
        "metadata": {"name": name}, "status": status,
    })
}
