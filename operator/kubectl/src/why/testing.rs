//! Scenes of tests.

use serde_json::{Value, json};
use trainjob_api::{TrainJob, time::Timestamp};
use trainjob_core::facts::JobFacts;

use super::scene::{Scene, Seen, without_those_of};

/// When questions are asked: an hour after second 0, at which jobs are created.
pub(super) const NOW: Timestamp = Timestamp(3_600);

/// The job `team/llm` with this much more in its parts, and nothing beside it.
pub(super) fn scene(metadata: &Value, spec: &Value, conditions: &Value) -> Scene {
    let mut meta = json!({
        "namespace": "team", "name": "llm", "uid": "U", "resourceVersion": "7",
        "creationTimestamp": "1970-01-01T00:00:00Z",
    });
    extend(&mut meta, metadata);
    let mut whole = json!({"runtimeRef": {"name": "r"}});
    extend(&mut whole, spec);
    let job = json!({"metadata": meta, "spec": whole, "status": {"conditions": conditions}});
    let job: TrainJob = serde_json::from_value(job).unwrap();
    Scene {
        facts: JobFacts::of(&job),
        job,
        job_set: Seen::Absent,
        foreign_job_set: None,
        pods: Seen::There(Vec::new()),
        events: Vec::new(),
        workloads: Seen::There(Vec::new()),
        unread: Vec::new(),
        now: NOW,
        clock: None,
    }
}

fn extend(object: &mut Value, more: &Value) {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
}

/// A condition that has been True since second 600.
pub(super) fn condition(kind: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": Timestamp(600).to_string(),
    })
}

impl Scene {
    /// The same with the job's own JobSet.
    pub(super) fn with_job_set(mut self, more: &Value) -> Self {
        let mut job_set = json!({"metadata": {"name": "llm"}});
        extend(&mut job_set, more);
        self.job_set = Seen::There(serde_json::from_value(job_set).unwrap());
        self
    }

    /// The same with a JobSet of the job's name that is somebody else's, to which all Pods so far belong.
    pub(super) fn with_foreign_job_set(mut self, more: &Value) -> Self {
        let mut job_set = json!({"metadata": {"name": "llm", "uid": "J"}});
        extend(&mut job_set, more);
        self.foreign_job_set = Some(serde_json::from_value(job_set).unwrap());
        self.pods = without_those_of(self.foreign_job_set.as_ref(), self.pods);
        self
    }

    /// The same with a Pod of its JobSet that requests four GPUs.
    pub(super) fn with_pod(mut self, name: &str, node: Option<&str>, status: &Value) -> Self {
        let resources = json!({"requests": {"nvidia.com/gpu": "4"}});
        let pod = json!({
            "metadata": {
                "namespace": "team", "name": name,
                "labels": {"jobset.sigs.k8s.io/jobset-name": "llm", "jobset.sigs.k8s.io/jobset-uid": "J"},
            },
            "spec": {"nodeName": node, "containers": [{"name": "node", "resources": resources}]},
            "status": status,
        });
        let mut pods = self.labelled().to_vec();
        pods.push(serde_json::from_value(pod).unwrap());
        self.pods = Seen::There(pods);
        self
    }

    /// The same with an event.
    pub(super) fn with_event(mut self, reason: &str, message: &str) -> Self {
        let event = json!({
            "metadata": {"name": reason}, "involvedObject": {"name": "llm"},
            "reason": reason, "message": message,
        });
        self.events.push(serde_json::from_value(event).unwrap());
        self
    }

    /// The same with a Workload of Kueue that has these conditions.
    pub(super) fn with_workload(mut self, active: bool, conditions: &Value) -> Self {
        let workload = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {"namespace": "team", "name": "trainjob-llm-1"},
            "spec": {"active": active}, "status": {"conditions": conditions},
        });
        self.workloads = Seen::There(vec![serde_json::from_value(workload).unwrap()]);
        self
    }
}
