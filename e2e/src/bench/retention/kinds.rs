//! The eight kinds: finished objects of them as they are stored, and the policies about them.

#![expect(clippy::indexing_slicing, reason = "the objects that are indexed are written here")]

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use serde_json::{Value, json};

use crate::faults::retention::definition;
use crate::testenv::recorder::kind;
use crate::testenv::{workspace, yaml};

/// A kind: group, version, name and plural, and the file of its recipe where it is not built in.
pub(super) struct Kind {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) name: &'static str,
    pub(super) plural: &'static str,
    recipe: Option<&'static str>,
}

const fn built_in(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Kind {
    Kind { group, version, name: kind, plural, recipe: None }
}

/// All of them. Those that Kubernetes does not have are stored with whatever is in them; no controller acts on any.
pub(super) static KINDS: [Kind; 8] = [
    built_in("batch", "v1", "Job", "jobs"),
    built_in("", "v1", "Pod", "pods"),
    built_in("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
    built_in("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs"),
    built_in("kueue.x-k8s.io", "v1beta2", "Workload", "workloads"),
    Kind {
        recipe: Some("argo-workflow"),
        ..built_in("argoproj.io", "v1alpha1", "Workflow", "workflows")
    },
    Kind { recipe: Some("rayjob"), ..built_in("ray.io", "v1", "RayJob", "rayjobs") },
    Kind {
        recipe: Some("pytorchjob"),
        ..built_in("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs")
    },
];

/// The kind whose objects fall due one after the other.
pub(super) static DRIPPING: &Kind = &KINDS[3];

/// A week, in seconds: nothing that is measured at rest is due.
const WEEK: u32 = 604_800;

impl Kind {
    /// Its definition, if Kubernetes does not have it.
    pub(super) fn definition(&self) -> Option<Value> {
        let is_custom = self.group.contains('.');
        is_custom.then(|| definition(self.group, self.version, self.name, self.plural))
    }

    fn resource(&self) -> ApiResource {
        kind(self.group, self.version, self.name)
    }

    /// Its objects in a namespace.
    pub(super) fn api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, &self.resource())
    }

    /// The path of its objects in a namespace.
    pub(super) fn path(&self, namespace: &str) -> String {
        let Self { group, version, plural, .. } = self;
        match *group {
            "" => format!("/api/{version}/namespaces/{namespace}/{plural}"),
            _ => format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}"),
        }
    }

    /// Whether its status is stored apart from the rest.
    pub(super) fn has_own_status(&self) -> bool {
        !self.group.contains('.')
    }

    /// An object that has ended at this time, of the size that such objects have.
    pub(super) fn object(&self, name: &str, at: &str) -> Value {
        let variables: Vec<Value> = (0..12)
            .map(|number| json!({"name": format!("VARIABLE_{number}"), "value": format!("value of variable {number} of {name}")}))
            .collect();
        let container = json!({
            "name": "main", "image": "registry.example.com/team/training:2026.11",
            "command": ["python", "-m", "training.main"], "env": variables,
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        });
        let pod = json!({"restartPolicy": "Never", "containers": [container]});
        let spec = match self.name {
            "Pod" => pod,
            "TrainJob" => json!({"runtimeRef": {"name": "torch-distributed"}, "podTemplate": pod}),
            _ => json!({"template": {"spec": pod}}),
        };
        let mut object = json!({
            "apiVersion": if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) },
            "kind": self.name,
            "metadata": {
                "name": name,
                "labels": {"team": "vision", "experiment": "resnet", "app.kubernetes.io/managed-by": "pipeline"},
            },
            "spec": spec,
        });
        if self.name == "Workflow" {
            object["metadata"]["labels"]["workflows.argoproj.io/completed"] = json!("true");
        }
        if !self.has_own_status() {
            object["status"] = self.status(at);
        }
        object
    }

    /// The status of an object that has succeeded at this time.
    pub(super) fn status(&self, at: &str) -> Value {
        let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "it has ended", "lastTransitionTime": at});
        match self.name {
            "Job" => json!({
                "startTime": at, "completionTime": at, "succeeded": 1,
                "conditions": [
                    condition("SuccessCriteriaMet", "CompletionsReached"),
                    condition("Complete", "CompletionsReached"),
                ],
            }),
            "Pod" => json!({
                "phase": "Succeeded",
                "containerStatuses": [{
                    "name": "main", "image": "none", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}},
                }],
            }),
            "JobSet" => json!({"conditions": [condition("Completed", "AllJobsCompleted")]}),
            "TrainJob" => json!({"conditions": [condition("Complete", "AllJobsCompleted")]}),
            "Workload" => json!({"conditions": [condition("Finished", "Succeeded")]}),
            "Workflow" => json!({"phase": "Succeeded", "finishedAt": at}),
            "RayJob" => {
                json!({"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "endTime": at})
            }
            _ => {
                json!({"conditions": [condition("Succeeded", "JobSucceeded")], "completionTime": at})
            }
        }
    }

    /// A policy about it: of a namespace, or of the cluster if none is given.
    pub(super) fn policy(
        &self,
        name: &str,
        namespace: Option<&str>,
        rules: &Value,
    ) -> Result<Value> {
        let (kind, metadata) = match namespace {
            None => ("ClusterRetentionPolicy", json!({"name": name})),
            Some(namespace) => ("RetentionPolicy", json!({"name": name, "namespace": namespace})),
        };
        let mut policy = json!({
            "apiVersion": "lifecycle.trainjob.dev/v1alpha1", "kind": kind, "metadata": metadata,
            "spec": {
                "target": {"apiGroup": self.group, "kind": self.name},
                "mode": "Enforce", "propagation": "Background", "deletesPerSecond": 0,
                "breaker": {"maxCount": 1_000_000},
                "rules": rules,
            },
        });
        if let Some(recipe) = self.recipe {
            let text = workspace::read(&format!("examples/retention/kinds/{recipe}.yaml"))?;
            let recipe = yaml::documents(&text)?.pop().context("an empty recipe")?;
            policy["spec"]["finished"] = recipe["spec"]["finished"].clone();
        }
        Ok(policy)
    }
}

/// One rule, for all.
pub(super) fn all(seconds: u32) -> Value {
    json!([{"name": "all", "action": {"ttlSecondsAfterFinished": seconds}}])
}

/// A policy of the cluster for each kind, by which nothing is due; `turn` makes their digests differ.
pub(super) fn of_cluster(turn: u32) -> Result<Vec<Value>> {
    KINDS
        .iter()
        .map(|kind| kind.policy(&format!("all-{}", kind.plural), None, &all(WEEK + turn)))
        .collect()
}

/// So many policies of namespaces, which look at labels, outcomes and groups, and by which nothing is due.
pub(super) fn of_namespaces(count: usize, namespaces: &[String]) -> Result<Vec<Value>> {
    let kinds = KINDS.iter().enumerate().cycle();
    let policies = kinds.take(count).enumerate().map(|(number, (index, kind))| {
        let namespace = namespaces.get((number / KINDS.len()) % namespaces.len().max(1));
        let matches = json!({"outcomes": ["Failed"], "labels": {"matchLabels": {"team": "vision"}}});
        let week = json!({"ttlSecondsAfterFinished": WEEK});
        let rules = match index % 2 {
            0 => json!([{"name": "failed", "match": matches, "action": week}, {"name": "rest", "action": {"defer": true}}]),
            _ => json!([{"name": "failed", "match": matches, "action": week}, {"name": "rest", "action": {"keepLast": {"count": 10_000, "groupBy": ["experiment"]}}}]),
        };
        kind.policy(&format!("team-{number}"), namespace.map(String::as_str), &rules)
    });
    policies.collect()
}
