//! The Pods of a job that its deadline failed: which of them count, and what the rest wait for.
//!
//! A Pod counts if a JobSet of the job made it (R2 of `docs/semantics.md`). JobSet labels each of its Pods with its name
//! and with its UID, and a Job is the Pod's controller. A label alone is easily copied, and a Pod that somebody made by
//! hand runs for as long as they like. So the name is where a search begins, and not what it ends with.
//!
//! Doubt counts: a Pod that may be the JobSet's holds up the release. The UID alone is enough, because deleting a Job
//! with `--cascade=orphan` takes the controller away; the controller alone is enough, because anybody may remove a
//! label. Which JobSets a job has had is not recorded, so any UID counts but that of a JobSet that is not the job's.

#[cfg(test)]
mod tests;

use std::fmt;

use k8s_openapi::{
    api::core::v1::{Pod, PodStatus},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use trainjob_api::{constants::JOBSET_UID_LABEL, time::Timestamp};

/// How many Pods are named to users.
pub const MOST_NAMED: usize = 3;

/// The finalizer by which the Job controller counts Pods. It waits for the Pod's end, and not the other way round.
const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The reason of a Pod's status, and of its condition, once its node does not answer.
const NODE_LOST: &str = "NodeLost";
const UNREACHABLE: &str = "DeletionByTaintManager";

/// Who made a Pod that has the label of a job's JobSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// A JobSet of the job, as far as anybody can tell. It counts.
    JobSet,
    /// A JobSet of the same name that is not the job's.
    ForeignJobSet,
    /// Somebody else, who gave it the label.
    Somebody,
}

impl Maker {
    /// Who made the Pod with this metadata. `foreign` is the UID of a JobSet of the job's name that is not the job's.
    #[must_use]
    pub fn of(pod: &ObjectMeta, foreign: Option<&str>) -> Self {
        let labels = pod.labels.as_ref();
        let uid = labels.and_then(|labels| labels.get(JOBSET_UID_LABEL)).map(String::as_str);
        match uid.filter(|uid| !uid.is_empty()) {
            Some(uid) if Some(uid) == foreign => Self::ForeignJobSet,
            Some(_) => Self::JobSet,
            None if is_controlled_by_job(pod) => Self::JobSet,
            None => Self::Somebody,
        }
    }
}

fn is_controlled_by_job(pod: &ObjectMeta) -> bool {
    let mut owners = pod.owner_references.iter().flatten();
    owners.any(|owner| {
        let group = owner.api_version.split('/').next();
        owner.controller == Some(true) && owner.kind == "Job" && group == Some("batch")
    })
}

/// What a check for the running Pods of a job has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodCheck {
    /// Those that count; `None` if there are none.
    pub running: Option<RunningPods>,
    /// The name of one that has the label and that somebody else made, if there is one.
    pub stray: Option<String>,
}

/// Pods of a job that run: at least one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunningPods {
    /// The first of them, at most [`MOST_NAMED`]; none if it was only asked whether there are any.
    pub named: Vec<RunningPod>,
    /// Whether there may be more.
    pub more: bool,
}

impl RunningPods {
    /// There are some, and nothing else is known of them.
    #[must_use]
    pub const fn unnamed() -> Self {
        Self { named: Vec::new(), more: true }
    }

    /// The first of these Pods that count. `more` says whether there are others that are not among them.
    #[must_use]
    pub fn among(pods: &[Pod], foreign: Option<&str>, more: bool, now: Timestamp) -> Option<Self> {
        let counts = |pod: &&Pod| Maker::of(&pod.metadata, foreign) == Maker::JobSet;
        let mut counting = pods.iter().filter(counts);
        let first = counting.by_ref().take(MOST_NAMED);
        let named: Vec<_> = first.map(|pod| RunningPod::of(pod, now)).collect();
        let more = more || counting.next().is_some();
        (!named.is_empty()).then_some(Self { named, more })
    }
}

impl fmt::Display for RunningPods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pod) in self.named.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            pod.fmt(f)?;
        }
        if self.more { f.write_str("; and more") } else { Ok(()) }
    }
}

/// A Pod that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningPod {
    /// Its name.
    pub name: String,
    /// The node that it runs on, as far as it is known.
    pub node: Option<String>,
    /// Since when it has run; if that is not known, since when it has existed.
    pub since: Timestamp,
    /// Why it probably still runs.
    pub cause: Cause,
}

/// Why a Pod probably still runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Its node does not answer, so that nobody can say whether it has ended.
    NodeNotReady,
    /// Nobody has deleted it yet; the garbage collector will once it has noticed that its Job is gone.
    NotDeleted,
    /// It has been told to end and may take until then.
    GracePeriod {
        /// When that is over.
        ends: Timestamp,
    },
    /// Somebody's finalizer keeps it.
    Finalizer(String),
    /// It should have ended by then.
    Overdue {
        /// When its grace period was over.
        since: Timestamp,
    },
}

impl RunningPod {
    /// What is to be said of a Pod at `now`. Without spec and status less is known of it.
    #[must_use]
    pub fn of(pod: &Pod, now: Timestamp) -> Self {
        let Pod { metadata, spec, status } = pod;
        let started = status.as_ref().and_then(|status| status.start_time.as_ref());
        let since = started.or(metadata.creation_timestamp.as_ref());
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            node: spec.as_ref().and_then(|spec| spec.node_name.clone()),
            since: since.map(Timestamp::from).unwrap_or_default(),
            cause: Cause::of(metadata, status.as_ref(), now),
        }
    }
}

impl Cause {
    /// A Pod's `deletionTimestamp` is when its grace period is over.
    fn of(metadata: &ObjectMeta, status: Option<&PodStatus>, now: Timestamp) -> Self {
        if status.is_some_and(is_lost) {
            return Self::NodeNotReady;
        }
        let Some(ends) = metadata.deletion_timestamp.as_ref().map(Timestamp::from) else {
            return Self::NotDeleted;
        };
        let mut finalizers = metadata.finalizers.iter().flatten();
        match finalizers.find(|finalizer| *finalizer != JOB_TRACKING) {
            _ if now < ends => Self::GracePeriod { ends },
            Some(finalizer) => Self::Finalizer(finalizer.clone()),
            None => Self::Overdue { since: ends },
        }
    }
}

/// What the controllers of nodes write once a node does not answer.
fn is_lost(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    status.reason.as_deref() == Some(NODE_LOST)
        || status.phase.as_deref() == Some("Unknown")
        || conditions.any(|condition| {
            condition.type_ == "DisruptionTarget"
                && condition.status == "True"
                && condition.reason.as_deref() == Some(UNREACHABLE)
        })
}

impl fmt::Display for RunningPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, node, since, cause } = self;
        write!(f, "Pod {name}")?;
        if let Some(node) = node {
            write!(f, " on node {node}")?;
        }
        write!(f, " since {since} ({cause})")
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeNotReady => f.write_str("its node is not ready"),
            Self::NotDeleted => f.write_str("nobody has deleted it yet"),
            Self::GracePeriod { ends } => write!(f, "its grace period ends at {ends}"),
            Self::Finalizer(name) => write!(f, "finalizer {name} keeps it"),
            Self::Overdue { since } => {
                write!(f, "its grace period was over at {since}; its node may not be ready")
            }
        }
    }
}
