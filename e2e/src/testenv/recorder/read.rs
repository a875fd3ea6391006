//! What rules look at, read from objects as the API server sends them.
//!
//! With types of this module's own: a judge who looks through the eyes of the judged proves nothing.

use std::hash::{DefaultHasher, Hash, Hasher};

use invariants::{Condition, Hold, Job, Object, State};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::{Resource, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainjob_api::constants::{MANAGED_BY, MULTIKUEUE_ORIGIN_LABEL};
use trainjob_api::time::Timestamp;

/// Label by which JobSet names the very JobSet a Pod belongs to.
const JOBSET_UID_LABEL: &str = "jobset.sigs.k8s.io/jobset-uid";

/// Annotation that holds the deletion of a job by its TTL.
const HOLD: &str = "lifecycle.trainjob.dev/hold-until";

pub(super) type TrainJob = kube::api::Object<JobSpec, JobStatus>;
pub(super) type JobSet = kube::api::Object<JobSetSpec, JobSetStatus>;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct JobSpec {
    suspend: bool,
    active_deadline_seconds: Option<i64>,
    ttl_seconds_after_finished: Option<i64>,
    managed_by: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct JobStatus {
    conditions: Vec<meta::Condition>,
    jobs_status: Value,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct JobSetSpec {
    suspend: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct JobSetStatus {
    conditions: Vec<meta::Condition>,
}

/// An object of a kind that is recorded.
pub(super) trait Recorded: ResourceExt {
    fn state(&self) -> State;

    /// UID of what it belongs to.
    fn owner(&self) -> Option<String> {
        let controller = self.owner_references().iter().find(|it| it.controller == Some(true))?;
        (controller.kind == "TrainJob").then(|| controller.uid.clone())
    }
}

impl Recorded for TrainJob {
    fn state(&self) -> State {
        let (spec, status) = (&self.spec, self.status.clone().unwrap_or_default());
        State::TrainJob(Job {
            suspend: spec.suspend,
            deadline: spec.active_deadline_seconds,
            ttl: spec.ttl_seconds_after_finished,
            hold: self.annotations().get(HOLD).map(|text| hold(text)),
            managed_elsewhere: spec.managed_by.as_deref().is_some_and(|it| it != MANAGED_BY),
            remote_copy: self.labels().contains_key(MULTIKUEUE_ORIGIN_LABEL),
            conditions: brief(&status.conditions),
            counts: digest(&status.jobs_status),
        })
    }
}

impl Recorded for JobSet {
    fn state(&self) -> State {
        let conditions = self.status.as_ref().map(|status| brief(&status.conditions));
        State::JobSet(invariants::JobSet {
            suspend: self.spec.suspend,
            conditions: conditions.unwrap_or_default(),
        })
    }
}

impl Recorded for ConfigMap {
    fn state(&self) -> State {
        State::ConfigMap
    }
}

impl Recorded for Secret {
    fn state(&self) -> State {
        State::Other("secrets".into())
    }
}

impl Recorded for Pod {
    fn state(&self) -> State {
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        State::Pod { running: !matches!(phase, Some("Succeeded" | "Failed")) }
    }

    fn owner(&self) -> Option<String> {
        self.labels().get(JOBSET_UID_LABEL).cloned()
    }
}

/// What rules look at of `item`.
pub(super) fn object<K: Recorded + Resource>(item: &K) -> Object {
    let metadata = item.meta();
    let deleting = metadata.deletion_timestamp.as_ref();
    Object {
        namespace: item.namespace().unwrap_or_default(),
        name: item.name_any(),
        uid: item.uid().unwrap_or_default(),
        created: metadata.creation_timestamp.as_ref().map(Timestamp::from).unwrap_or_default(),
        deleting: deleting.map(Timestamp::from),
        generation: metadata.generation.unwrap_or_default(),
        finalizers: item.finalizers().to_vec(),
        owner: item.owner(),
        state: item.state(),
    }
}

fn hold(text: &str) -> Hold {
    let named = serde_json::from_value(Value::from(text));
    named.map_or(Hold::Unreadable, |at: meta::Time| Hold::Until(Timestamp::from(&at)))
}

fn brief(conditions: &[meta::Condition]) -> Vec<Condition> {
    let brief = |condition: &meta::Condition| Condition {
        kind: condition.type_.clone(),
        holds: condition.status == "True",
        reason: condition.reason.clone(),
        since: Timestamp::from(&condition.last_transition_time),
        observed_generation: condition.observed_generation,
    };
    conditions.iter().map(brief).collect()
}

fn digest(counts: &Value) -> u64 {
    if counts.is_null() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    counts.to_string().hash(&mut hasher);
    hasher.finish()
}
