//! What is worked on, and in which order.

use std::sync::Arc;

use k8s_openapi::{api::core::v1::Pod as StoredPod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use trainjob_accounting_core::pod::Pod;
use trainjob_core::{
    facts::ObjectKey,
    queue_position::{self, QueueKey, QueuePriority},
};

/// A TrainJob of all that ever had its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
}

impl JobKey {
    /// The TrainJob that the labels of a Pod name; `None`: no TrainJob can have that name or UID.
    #[must_use]
    pub fn of_pod(stored: &StoredPod, pod: &Pod) -> Option<Self> {
        pod.template.may_name_job().then_some(Self {
            namespace: stored.metadata.namespace.as_deref()?.into(),
            name: Arc::clone(&pod.template.job_name),
            uid: Arc::clone(&pod.template.job_uid),
        })
    }

    /// Where the TrainJob is, or was.
    #[must_use]
    pub fn object(&self) -> ObjectKey {
        ObjectKey::new(Arc::clone(&self.namespace), &*self.name)
    }
}

/// A Pod of which nothing else has to be known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

impl PodKey {
    /// The Pod with these metadata.
    #[must_use]
    pub fn of(metadata: &ObjectMeta) -> Self {
        let ObjectMeta { namespace, name, uid, .. } = metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self { namespace: text(namespace), name: text(name), uid: text(uid) }
    }
}

/// What is worked on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The record of a TrainJob.
    Record(JobKey),
    /// The release of a Pod of it, by its UID.
    Pod(JobKey, Arc<str>),
    /// One list of the Pods of many TrainJobs of this namespace.
    SharedList(Arc<str>),
}

impl QueueKey for Key {
    fn namespace(&self) -> &Arc<str> {
        match self {
            Self::Record(job) | Self::Pod(job, _) => &job.namespace,
            Self::SharedList(namespace) => namespace,
        }
    }
}

/// Of so many turns, one begins with what nobody waits for: it could starve otherwise.
const TURNS_PER_UNAWAITED: u8 = 8;

/// What goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Somebody waits for a Pod to go.
    Awaited,
    /// Nobody does.
    Unawaited,
}

impl QueuePriority for Priority {
    const ALL: &'static [Self] = &[Self::Awaited, Self::Unawaited];
    const EVENTS: Self = Self::Unawaited;

    fn begins(turn: u8) -> Self {
        if turn.is_multiple_of(TURNS_PER_UNAWAITED) { Self::Unawaited } else { Self::Awaited }
    }

    fn kept(self, places: usize) -> usize {
        match self {
            Self::Awaited => (places / 4).max(1),
            Self::Unawaited => 1,
        }
    }
}

/// Where a pass waits.
pub type Position = queue_position::QueuePosition<Priority>;
