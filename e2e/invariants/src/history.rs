//! What is known of a run: changes of objects, and requests of the operator.
//!
//! Only what rules look at is kept, so that the history of ten thousand jobs fits in memory and a
//! million simulated ones can be judged in a minute.

use std::collections::BTreeMap;

use trainjob_api::time::Timestamp;

pub use crate::target::Hold;
use crate::target::{Policy, Target};

/// Milliseconds since the epoch; in simulated runs, of simulated time.
pub type Millis = i64;

/// The record of a run.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Every version of every object, in the order in which they were stored.
    pub changes: Vec<Change>,
    /// Every request of every operator, in the order in which they were sent.
    pub requests: Vec<Request>,
    /// How the run was set up.
    pub terms: Terms,
    /// When the record ends.
    pub end: Millis,
}

/// What judging a run depends on.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// What deadlines are counted from.
    pub clock: Clock,
    /// Whether the TTL applies to finished jobs that somebody else manages.
    pub ttl_for_managed_elsewhere: bool,
    /// How far a hold may reach beyond the end of a TTL, in seconds.
    pub maximum_hold: i64,
    /// How long something that is due may take, faults and repairs included.
    pub allowance: Millis,
    /// How old the state may be that an operator decides on: the time an event takes to reach it.
    pub staleness: Millis,
    /// How many requests one operator may have under way at the same time.
    pub in_flight: usize,
}

impl Default for Terms {
    /// Those of an undisturbed operator with its default configuration on a busy machine.
    fn default() -> Self {
        Self {
            clock: Clock::Creation,
            ttl_for_managed_elsewhere: false,
            maximum_hold: 30 * 24 * 60 * 60,
            allowance: 10_000,
            staleness: 2_000,
            in_flight: 64,
        }
    }
}

/// What deadlines are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The creation of the job.
    Creation,
    /// Its last resume, or its creation if it was never suspended.
    LastResume,
}

/// An object was stored, or is gone.
#[derive(Debug, Clone)]
pub struct Change {
    /// The resource version of the change: the order in which the API server made all changes.
    pub revision: u64,
    /// When it was seen. In real runs a moment after it was stored.
    pub at: Millis,
    /// The object after the change; when it is gone, as it was last.
    pub object: Object,
    /// Whether the object is gone.
    pub gone: bool,
}

/// An object, as far as rules look at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `metadata.deletionTimestamp`.
    pub deleting: Option<Timestamp>,
    /// `metadata.generation`; 0 where the kind has none.
    pub generation: i64,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// UID of the TrainJob (for Pods: of the JobSet) that it belongs to.
    pub owner: Option<String>,
    /// What it is, and the rest.
    pub state: State,
}

/// The part of an object that only its kind has.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// A TrainJob.
    TrainJob(Job),
    /// A JobSet.
    JobSet(JobSet),
    /// A ConfigMap.
    ConfigMap,
    /// A Pod.
    Pod {
        /// Whether its phase is neither `Succeeded` nor `Failed`.
        running: bool,
    },
    /// An object that retention policies are about.
    Target(Box<Target>),
    /// A retention policy.
    Policy(Box<Policy>),
    /// A namespace, with its labels.
    Namespace(BTreeMap<String, String>),
    /// Any other child: its kind, in the plural as in paths.
    Other(String),
}

/// A TrainJob.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Job {
    /// `spec.suspend`.
    pub suspend: bool,
    /// `spec.activeDeadlineSeconds`, as stored.
    pub deadline: Option<i64>,
    /// `spec.ttlSecondsAfterFinished`, as stored.
    pub ttl: Option<i64>,
    /// The hold that its annotation `lifecycle.trainjob.dev/hold-until` asks for.
    pub hold: Option<Hold>,
    /// Whether `spec.managedBy` names somebody else.
    pub managed_elsewhere: bool,
    /// Whether it is a copy that MultiKueue made.
    pub remote_copy: bool,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
    /// A digest of `status.jobsStatus`; 0 when it is absent.
    pub counts: u64,
}

/// A JobSet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobSet {
    /// `spec.suspend`.
    pub suspend: bool,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `type`.
    pub kind: String,
    /// Whether its status is True.
    pub holds: bool,
    /// `reason`.
    pub reason: String,
    /// `lastTransitionTime`.
    pub since: Timestamp,
    /// `observedGeneration`.
    pub observed_generation: Option<i64>,
}

/// A request of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Which operator process sent it, counted in the order in which they started.
    pub process: u32,
    /// When it was sent.
    pub sent: Millis,
    /// When its answer was there, or it was clear that there would be none.
    pub ended: Millis,
    /// As in RBAC: `create`, `patch`, `update`, `delete`, `get`, `list`, `watch`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural of the kind.
    pub resource: String,
    /// Such as `status`; empty where there is none.
    pub subresource: String,
    /// The namespace; empty for cluster-wide requests.
    pub namespace: String,
    /// The name of the object; for creations, that in the body.
    pub name: String,
    /// The UID in its preconditions, or in the metadata of a change.
    pub uid: Option<String>,
    /// The resource version in its preconditions, or in the metadata of a change.
    pub version: Option<u64>,
    /// UID of the controller in the body of a creation.
    pub owner: Option<String>,
    /// The `spec.suspend` that it sets.
    pub suspend: Option<bool>,
    /// What came of it.
    pub answer: Answer,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status that the operator got; `None` when it got none.
    pub code: Option<u16>,
    /// The HTTP status that the API server gave; `None` when it never saw the request or it is not known.
    pub served: Option<u16>,
    /// Seconds of `Retry-After` that the operator was told.
    pub retry_after: Option<u32>,
    /// The resource version of the object in the API server's answer.
    pub version: Option<u64>,
}

impl Request {
    /// Whether it asks for a change.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Whether the API server did what it asks for.
    #[must_use]
    pub fn took_effect(&self) -> bool {
        self.answer.served.is_some_and(|code| (200..300).contains(&code))
    }
}

impl Object {
    /// Its conditions, where its kind has any.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        match &self.state {
            State::TrainJob(job) => &job.conditions,
            State::JobSet(job_set) => &job_set.conditions,
            State::ConfigMap
            | State::Pod { .. }
            | State::Target(_)
            | State::Policy(_)
            | State::Namespace(_)
            | State::Other(_) => &[],
        }
    }
}

impl State {
    /// The plural of the kind, as in paths.
    #[must_use]
    pub fn plural(&self) -> &str {
        match self {
            Self::TrainJob(_) => "trainjobs",
            Self::JobSet(_) => "jobsets",
            Self::ConfigMap => "configmaps",
            Self::Pod { .. } => "pods",
            Self::Target(target) => &target.resource,
            Self::Policy(policy) if policy.is_of_cluster => "clusterretentionpolicies",
            Self::Policy(_) => "retentionpolicies",
            Self::Namespace(_) => "namespaces",
            Self::Other(plural) => plural,
        }
    }
}
