//! What the demo sees: objects as their watches deliver them, and when.
//!
//! They are read with types of the demo's own, from the same API that anybody can watch. A judge who
//! looks through the eyes of the judged proves nothing.

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use kube::api::{DynamicObject, Object};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::demo::clock::Timestamp;

/// The label of JobSet's Pods that names their JobSet, and so their TrainJob.
const JOBSET_LABEL: &str = "jobset.sigs.k8s.io/jobset-name";

const GPU: &str = "nvidia.com/gpu";

/// A TrainJob, as far as the demo reads it.
pub type TrainJob = Object<Spec, Status>;

/// What the demo reads of a TrainJob's spec.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// Whether it is to hold no Pods.
    pub suspend: bool,
    /// Its deadline.
    pub active_deadline_seconds: Option<i64>,
    /// Its time to live.
    pub ttl_seconds_after_finished: Option<i64>,
}

/// What the demo reads of a TrainJob's status.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// How it is.
    pub conditions: Vec<Condition>,
}

/// Something that changed, and the instant at which its watch delivered it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// When.
    pub at: Timestamp,
    /// The TrainJob it is about.
    pub job: String,
    /// What.
    pub change: Change,
}

/// What changed about one TrainJob.
#[derive(Debug, Clone)]
pub enum Change {
    /// The TrainJob is there, or is different.
    Job(Box<JobState>),
    /// The TrainJob is gone.
    JobGone,
    /// Its JobSet is there, or is different.
    JobSet {
        /// Whether it has ended.
        ended: bool,
    },
    /// Its JobSet is gone.
    JobSetGone,
    /// A Pod of it is there, or is different.
    Pod(String, PodState),
    /// A Pod of it is gone.
    PodGone(String),
    /// Its users were told something.
    Told(String),
    /// It was not let in, and the API server says why.
    Refused(String),
}

/// A TrainJob at one instant.
#[derive(Debug, Clone)]
pub struct JobState {
    /// When it was created.
    pub created: Timestamp,
    /// The stored `deletionTimestamp`.
    pub deleted: Option<Timestamp>,
    /// What was asked for.
    pub spec: Spec,
    /// How it is.
    pub conditions: Vec<Condition>,
}

impl JobState {
    /// The condition of type `kind`, if its status is True.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|it| it.type_ == kind && it.status == "True")
    }
}

impl From<&TrainJob> for JobState {
    fn from(job: &TrainJob) -> Self {
        let instant = |time: &Option<Time>| time.as_ref().map(|time| time.0);
        Self {
            created: instant(&job.metadata.creation_timestamp).unwrap_or_default(),
            deleted: instant(&job.metadata.deletion_timestamp),
            spec: job.spec.clone(),
            conditions: job.status.clone().unwrap_or_default().conditions,
        }
    }
}

/// A Pod at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodState {
    /// How far it is.
    pub phase: PodPhase,
    /// The GPUs it asks for.
    pub gpus: i64,
    /// When it got its node, as the API server has stored it.
    pub bound_at: Option<Timestamp>,
    /// When the last of its containers ended, as its node has reported it; `None` until all have.
    pub ended_at: Option<Timestamp>,
}

/// How far a Pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    /// It has no node yet, and so holds nothing.
    Unscheduled,
    /// It has a node, and what it asks for there.
    Starting,
    /// It runs.
    Running,
    /// It has ended, and holds nothing any more.
    Ended,
}

impl PodState {
    /// The GPUs that nobody else can have because of it.
    #[must_use]
    pub const fn held_gpus(&self) -> i64 {
        match self.phase {
            PodPhase::Starting | PodPhase::Running => self.gpus,
            PodPhase::Unscheduled | PodPhase::Ended => 0,
        }
    }

    /// Its GPUs times the whole seconds from its node to its end, as AT1 to AT3 of `docs/accounting.md` cut them;
    /// `None` if one of the two is not known.
    #[must_use]
    pub fn gpu_seconds(&self) -> Option<i64> {
        Some(self.gpus * (self.ended_at?.as_second() - self.bound_at?.as_second()))
    }
}

impl From<&Pod> for PodState {
    fn from(pod: &Pod) -> Self {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let scheduled = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let phase = match phase {
            Some("Succeeded" | "Failed") => PodPhase::Ended,
            Some("Running") => PodPhase::Running,
            _ if scheduled => PodPhase::Starting,
            _ => PodPhase::Unscheduled,
        };
        Self {
            phase,
            gpus: containers.map(gpus).sum(),
            bound_at: bound_at(pod),
            ended_at: ended_at(pod),
        }
    }
}

fn bound_at(pod: &Pod) -> Option<Timestamp> {
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let bound = conditions.find(|it| it.type_ == "PodScheduled" && it.status == "True")?;
    Some(bound.last_transition_time.as_ref()?.0)
}

fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let containers = pod.status.as_ref()?.container_statuses.iter().flatten();
    let ends = containers.map(|container| {
        let terminated = container.state.as_ref()?.terminated.as_ref()?;
        terminated.finished_at.as_ref().map(|time| time.0)
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

fn gpus(container: &Container) -> i64 {
    let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let limit = limits.and_then(|limits| limits.get(GPU));
    limit.and_then(|quantity| quantity.0.parse().ok()).unwrap_or(0)
}

/// Whether a JobSet has ended, well or not.
#[must_use]
pub fn has_ended(job_set: &DynamicObject) -> bool {
    let conditions = job_set.data.pointer("/status/conditions").and_then(Value::as_array);
    let ends = |it: &Value| matches!(it["type"].as_str(), Some("Completed" | "Failed"));
    conditions.into_iter().flatten().any(|it| ends(it) && it["status"] == "True")
}

/// The TrainJob a Pod belongs to.
#[must_use]
pub fn job_of(pod: &Pod) -> Option<String> {
    pod.labels().get(JOBSET_LABEL).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_holds_its_gpus_from_the_moment_it_has_a_node_until_it_has_ended() {
        let container = json!({"name": "node", "resources": {"limits": {"nvidia.com/gpu": "4"}}});
        for (node, phase, held) in [
            (None, "Pending", 0),
            (Some("gpu-0"), "Pending", 4),
            (Some("gpu-0"), "Running", 4),
            (Some("gpu-0"), "Succeeded", 0),
            (Some("gpu-0"), "Failed", 0),
        ] {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": "a", "labels": {(JOBSET_LABEL): "job"}},
                "spec": {"nodeName": node, "containers": [container]},
                "status": {"phase": phase},
            }))
            .unwrap();
            assert_eq!(PodState::from(&pod).held_gpus(), held, "{node:?} {phase}");
            assert_eq!(job_of(&pod).as_deref(), Some("job"));
        }
    }

    #[test]
    fn gpu_seconds_of_a_pod_are_whole_and_go_from_its_node_to_the_end_of_its_last_container() {
        let container = json!({"name": "node", "resources": {"limits": {"nvidia.com/gpu": "4"}}});
        let ended = |at: &str| {
            json!({"name": at, "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "finishedAt": at}}})
        };
        let runs = json!({"name": "runs", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {}}});
        let (first, last) = (ended("2026-01-04T10:00:07.900Z"), ended("2026-01-04T10:00:09.100Z"));
        for (scheduled, containers, expected) in [
            ("True", vec![], None),
            ("True", vec![first.clone(), runs], None),
            ("False", vec![first.clone()], None),
            ("True", vec![first.clone()], Some(4 * 2)),
            ("True", vec![last, first], Some(4 * 4)),
        ] {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": "a"},
                "spec": {"nodeName": "gpu-0", "containers": [container]},
                "status": {
                    "conditions": [{"type": "PodScheduled", "status": scheduled, "lastTransitionTime": "2026-01-04T10:00:05Z"}],
                    "containerStatuses": containers,
                },
            }))
            .unwrap();
            assert_eq!(PodState::from(&pod).gpu_seconds(), expected, "{scheduled} {containers:?}");
        }
    }

    #[test]
    fn a_train_job_without_status_has_no_conditions() {
        let job: TrainJob = serde_json::from_value(json!({
            "metadata": {"name": "a", "creationTimestamp": "2026-01-04T10:00:00Z"},
            "spec": {"runtimeRef": {"name": "r"}, "ttlSecondsAfterFinished": 5},
        }))
        .unwrap();
        let state = JobState::from(&job);
        assert_eq!(state.created.to_string(), "2026-01-04T10:00:00Z");
        assert_eq!(state.spec.ttl_seconds_after_finished, Some(5));
        assert!(state.conditions.is_empty() && !state.spec.suspend);
    }

    #[test]
    fn a_job_set_has_ended_when_a_condition_that_says_so_is_true() {
        for (kind, status, ended) in [
            ("Completed", "True", true),
            ("Failed", "True", true),
            ("Completed", "False", false),
            ("StartupPolicyCompleted", "True", false),
        ] {
            let job_set = serde_json::from_value(json!({
                "metadata": {"name": "a"},
                "status": {"conditions": [{"type": kind, "status": status}]},
            }))
            .unwrap();
            assert_eq!(has_ended(&job_set), ended, "{kind} {status}");
        }
    }
}
