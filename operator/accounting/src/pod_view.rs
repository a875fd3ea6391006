//! Pods as they are read: only what is counted.
//!
//! A Pod may have twenty thousand volumes, which are a few bytes of text each and kilobytes as values, and its managed fields
//! may say what cannot be read. Neither may keep other Pods from being counted.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Pod as StoredPod, PodSpec, PodStatus, ResourceRequirements},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use kube::Resource;
use serde::Deserialize;
use trainjob_engine::Readable;

/// A Pod as a list or a watch delivers it.
pub type ListedPod = Readable<PodView, true>;

/// A stored Pod, of which only what is counted is read.
#[derive(Debug, Clone, Resource, Deserialize)]
#[resource(inherit = StoredPod)]
pub struct PodView {
    metadata: ObjectMeta,
    spec: Option<SpecView>,
    status: Option<PodStatus>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpecView {
    #[serde(default)]
    containers: Vec<ContainerView>,
    init_containers: Option<Vec<ContainerView>>,
    node_name: Option<String>,
    overhead: Option<BTreeMap<String, Quantity>>,
    resources: Option<ResourceRequirements>,
    termination_grace_period_seconds: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerView {
    name: String,
    resources: Option<ResourceRequirements>,
    restart_policy: Option<String>,
}

/// The Pod with this text.
///
/// # Errors
///
/// If not even its metadata can be read.
pub fn read(text: &str) -> serde_json::Result<StoredPod> {
    serde_json::from_str(text).map(stored)
}

/// The Pod, with nothing but what is counted. Of one that cannot be read nothing but its metadata is known.
pub fn stored(pod: ListedPod) -> StoredPod {
    match pod.0 {
        Ok(PodView { metadata, spec, status }) => {
            StoredPod { metadata, spec: spec.map(PodSpec::from), status }
        }
        Err(unreadable) => StoredPod { metadata: unreadable.metadata, ..StoredPod::default() },
    }
}

impl From<SpecView> for PodSpec {
    fn from(view: SpecView) -> Self {
        let containers = |views: Vec<ContainerView>| views.into_iter().map(Container::from);
        Self {
            containers: containers(view.containers).collect(),
            init_containers: view.init_containers.map(|views| containers(views).collect()),
            node_name: view.node_name,
            overhead: view.overhead,
            resources: view.resources,
            termination_grace_period_seconds: view.termination_grace_period_seconds,
            ..Self::default()
        }
    }
}

impl From<ContainerView> for Container {
    fn from(ContainerView { name, resources, restart_policy }: ContainerView) -> Self {
        Self { name, resources, restart_policy, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_accounting_core::pod::Pod;

    use super::*;

    fn pod(volumes: usize, managed_at: &str) -> Value {
        let requests = json!({"requests": {"cpu": "1"}});
        let container = json!({"name": "node", "image": "i", "resources": requests});
        let init = json!({"name": "proxy", "restartPolicy": "Always", "resources": requests});
        let now = "2026-01-01T00:00:00Z";
        json!({
            "metadata": {
                "name": "pod", "namespace": "ns", "uid": "U", "resourceVersion": "7",
                "creationTimestamp": now,
                "labels": {
                    "lifecycle.trainjob.dev/trainjob-name": "job",
                    "lifecycle.trainjob.dev/trainjob-uid": "J",
                },
                "managedFields": [{"manager": "m", "time": managed_at}],
            },
            "spec": {
                "containers": [container], "initContainers": [init],
                "overhead": {"cpu": "1"}, "nodeName": "n", "terminationGracePeriodSeconds": 7,
                "volumes": vec![json!({}); volumes],
            },
            "status": {"phase": "Running", "containerStatuses": [{
                "name": "node", "image": "i", "imageID": "", "ready": true, "restartCount": 2,
                "state": {"running": {"startedAt": now}},
            }]},
        })
    }

    fn read(pod: &Value) -> Option<Pod> {
        Pod::read(&super::read(&pod.to_string()).unwrap())
    }

    #[test]
    fn all_that_is_counted_is_read() {
        let pod = pod(1, "2026-01-01T00:00:00Z");
        let whole: StoredPod = serde_json::from_value(pod.clone()).unwrap();
        assert_eq!(read(&pod), Pod::read(&whole));
    }

    #[test]
    fn pod_of_very_many_parts_or_with_managed_fields_that_cannot_be_read_is_counted() {
        let expected = read(&pod(1, "2026-01-01T00:00:00Z"));
        assert!(expected.is_some());
        assert_eq!(read(&pod(20_000, "never")), expected);
    }

    #[test]
    fn of_a_pod_that_cannot_be_read_the_metadata_are() {
        let mut unreadable = pod(1, "2026-01-01T00:00:00Z");
        unreadable["spec"]["containers"] = json!("none");
        let read = read(&unreadable).unwrap();
        assert_eq!((&*read.name, read.containers.len()), ("pod", 0));
    }
}
