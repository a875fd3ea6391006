//! How many GPUs a TrainJob holds.
//!
//! A Pod holds what it requests from the moment it gets a node until all its containers have ended, as in the accounting
//! of GPU-hours. GPUs are the resources that accounting takes for GPUs by default, and those of any vendor whose name ends
//! with `/gpu`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use trainjob_accounting_core::{amounts::requested, settings::GPU_RESOURCES};
use trainjob_api::constants::JOBSET_NAME_LABEL;
use trainjob_core::{facts::ObjectKey, running_pods::Maker};

/// What the Pods of one TrainJob hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// How many of them have not ended, with or without a node.
    pub pods: u64,
    /// The GPUs of those that have a node.
    pub gpus: u64,
}

/// What the Pods of each TrainJob hold.
#[derive(Debug, Default)]
pub struct HeldByJob(BTreeMap<ObjectKey, Held>);

impl HeldByJob {
    /// Counts one more Pod.
    pub fn add(&mut self, pod: &Pod) {
        let Some(job) = job_of(pod).filter(|_| !has_ended(pod)) else { return };
        let held = self.0.entry(job).or_default();
        held.pods += 1;
        held.gpus = held.gpus.saturating_add(of_pod(pod));
    }

    /// What the Pods of this job hold.
    #[must_use]
    pub fn of(&self, job: &ObjectKey) -> Held {
        self.0.get(job).copied().unwrap_or_default()
    }
}

/// The TrainJob whose JobSet made a Pod: the JobSet's name is the job's.
fn job_of(pod: &Pod) -> Option<ObjectKey> {
    let job_set = pod.metadata.labels.as_ref()?.get(JOBSET_NAME_LABEL)?;
    let own = Maker::of(&pod.metadata, None) == Maker::JobSet;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    own.then(|| ObjectKey::new(namespace, job_set.as_str()))
}

/// Whether all containers of a Pod have ended.
#[must_use]
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// How many GPUs a Pod holds: none before it has a node and after its end.
#[must_use]
pub fn of_pod(pod: &Pod) -> u64 {
    let Some(spec) = pod.spec.as_ref().filter(|spec| spec.node_name.is_some() && !has_ended(pod))
    else {
        return 0;
    };
    let amounts = requested(spec).into_iter().filter(|(resource, _)| is_gpu(resource));
    amounts.fold(0, |sum, (_, amount)| sum.saturating_add(amount))
}

fn is_gpu(resource: &str) -> bool {
    GPU_RESOURCES.contains(&resource) || resource.ends_with("/gpu")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(resources: &Value, phase: &str, node: Option<&str>) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "namespace": "team", "name": "p",
                "labels": {"jobset.sigs.k8s.io/jobset-name": "job", "jobset.sigs.k8s.io/jobset-uid": "u"},
            },
            "spec": {"nodeName": node, "containers": [{"name": "node", "resources": {"limits": resources, "requests": resources}}]},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    #[test]
    fn a_pod_holds_its_gpus_from_its_node_to_its_end() {
        let four = json!({"nvidia.com/gpu": "4", "cpu": "8"});
        for (resources, phase, node, expected) in [
            (&four, "Running", Some("n"), 4),
            (&four, "Pending", Some("n"), 4),
            (&four, "Pending", None, 0),
            (&four, "Unknown", Some("n"), 4),
            (&four, "Succeeded", Some("n"), 0),
            (&four, "Failed", Some("n"), 0),
            (&json!({"cpu": "8"}), "Running", Some("n"), 0),
            (&json!({"example.com/gpu": "2", "google.com/tpu": "8"}), "Running", Some("n"), 10),
            (&json!({"example.com/gpus": "2", "gpu": "8"}), "Running", Some("n"), 0),
        ] {
            let held = of_pod(&pod(resources, phase, node));
            assert_eq!(held, expected, "{resources} {phase} {node:?}");
        }
    }

    #[test]
    fn pods_are_counted_for_the_job_whose_jobset_made_them() {
        let two = json!({"nvidia.com/gpu": "2"});
        let mut stray = pod(&two, "Running", Some("n"));
        stray.metadata.labels.as_mut().unwrap().remove("jobset.sigs.k8s.io/jobset-uid");
        let mut held = HeldByJob::default();
        for counted in [
            pod(&two, "Running", Some("n")),
            pod(&two, "Running", Some("m")),
            pod(&two, "Pending", None),
            pod(&two, "Succeeded", Some("n")),
            stray,
        ] {
            held.add(&counted);
        }
        let key = |namespace: &str| ObjectKey::new(namespace, "job");
        assert_eq!(held.of(&key("team")), Held { pods: 3, gpus: 4 });
        assert_eq!(held.of(&key("other")), Held::default());
    }
}
