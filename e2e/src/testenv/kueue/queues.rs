//! Queues: a quota of GPUs, the way to it from a namespace, and priorities.

use anyhow::Result;
use kube::Client;
use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::testenv::apply::apply;

/// The version of Kueue's API.
pub(super) const API_VERSION: &str = "kueue.x-k8s.io/v1beta2";
/// The label that names a job's queue.
pub const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// The label that names a job's priority.
pub const PRIORITY_LABEL: &str = "kueue.x-k8s.io/priority-class";
/// What the quota is mostly about.
pub const GPU: &str = "nvidia.com/gpu";
/// The name of the `LocalQueue` in each namespace.
const LOCAL_QUEUE: &str = "queue";

/// The values of the priorities.
const PRIORITIES: [(&str, i32); 2] = [("low", 100), ("high", 1000)];

/// What a queue is to be.
#[derive(Debug, Clone)]
pub struct QueueOptions {
    /// The GPUs of its quota.
    pub gpus: u32,
    /// The labels of the nodes of its flavor, which Kueue writes into the Pods' node selector.
    pub node_labels: Value,
    /// The Topology of its flavor.
    pub topology: Option<String>,
    /// The admission checks that its workloads must pass.
    pub admission_checks: Vec<String>,
}

impl Default for QueueOptions {
    /// 8 GPUs of any fake node.
    fn default() -> Self {
        Self {
            gpus: 8,
            node_labels: json!({"type": "kwok"}),
            topology: None,
            admission_checks: Vec::new(),
        }
    }
}

/// A `ClusterQueue` with a flavor of its own, reached from one namespace by a `LocalQueue`.
#[derive(Debug, Clone)]
pub struct Queue {
    /// The name of the `ClusterQueue` and of its flavor.
    pub cluster_queue: String,
}

impl Queue {
    /// Makes the queue of a namespace, and the two priorities `low` and `high`.
    pub async fn create(client: &Client, namespace: &str, options: &QueueOptions) -> Result<Self> {
        let name = format!("{namespace}-queue");
        let mut manifests: Vec<Value> = PRIORITIES.map(priority).into();
        manifests.push(flavor(&name, options));
        manifests.push(cluster_queue(&name, options));
        manifests.push(json!({
            "apiVersion": API_VERSION,
            "kind": "LocalQueue",
            "metadata": {"name": LOCAL_QUEUE},
            "spec": {"clusterQueue": name},
        }));
        apply(client, namespace, manifests).await?;
        Ok(Self { cluster_queue: name })
    }

    /// The labels of a job of this queue.
    #[must_use]
    pub fn labels(&self, priority: &str) -> Value {
        json!({QUEUE_LABEL: LOCAL_QUEUE, PRIORITY_LABEL: priority})
    }
}

fn priority((name, value): (&str, i32)) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": value,
    })
}

fn flavor(name: &str, options: &QueueOptions) -> Value {
    let spec = json!({"nodeLabels": options.node_labels});
    let topology = options.topology.as_ref().map(|name| ("topologyName", json!(name)));
    json!({
        "apiVersion": API_VERSION,
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        "spec": with(spec, topology),
    })
}

fn cluster_queue(name: &str, options: &QueueOptions) -> Value {
    let spec = json!({
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{
            "coveredResources": ["cpu", "memory", GPU],
            "flavors": [{"name": name, "resources": [
                {"name": "cpu", "nominalQuota": "512"},
                {"name": "memory", "nominalQuota": "4Ti"},
                {"name": GPU, "nominalQuota": options.gpus},
            ]}],
        }],
    });
    let checks: Vec<Value> =
        options.admission_checks.iter().map(|name| json!({"name": name})).collect();
    let strategy = ("admissionChecksStrategy", json!({"admissionChecks": checks}));
    json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": with(spec, (!checks.is_empty()).then_some(strategy)),
    })
}

/// `spec` with one field more, if there is one.
fn with(mut spec: Value, more: Option<(&str, Value)>) -> Value {
    if let (Some(fields), Some((name, value))) = (spec.as_object_mut(), more) {
        fields.insert(name.to_owned(), value);
    }
    spec
}

/// One of Kueue's kinds.
#[must_use]
pub(super) fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("kueue.x-k8s.io", "v1beta2", kind))
}
