//! How an object finished.

use std::sync::Arc;

use trainjob_api::time::Timestamp;

use crate::{metadata::Metadata, seconds::Seconds};

/// How an object finished, as far as rules tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It did what it was for.
    Succeeded,
    /// It did not.
    Failed,
    /// Neither can be said, or nobody would care.
    Other,
    /// Kueue has given up a Workload. Its job has not finished: it is suspended for good.
    Deactivated,
}

impl Outcome {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::Other, Self::Deactivated];
}

/// The end of an object, by one definition of what finished means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// How it finished.
    pub outcome: Outcome,
    /// Why; empty if nothing says so.
    pub reason: String,
    /// When; `None` if nothing usable says so.
    pub time: Option<Timestamp>,
}

impl End {
    /// An end for this reason.
    pub(crate) fn new(outcome: Outcome, reason: &str, time: Option<Timestamp>) -> Self {
        Self { outcome, reason: reason.into(), time }
    }
}

/// How an object has ended, but for the time. Many objects have that in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// Why; empty if nothing says so.
    pub reason: Arc<str>,
    /// After how many seconds the kind's own controller deletes the object.
    pub own_ttl: Option<Seconds>,
    /// What keeps it.
    pub guards: Guards,
    /// What its deletion would do to its job.
    pub bond: Bond,
}

/// What keeps a finished object for a while, whatever its time (`docs/retention.md`, R13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Guards {
    /// A TrainJob that its deadline failed is the only record of what may still run: it is kept until its JobSet and its
    /// Pods are seen to be gone.
    pub release: bool,
    /// Something archives the object and is not done.
    pub archive: bool,
}

/// What deleting an object would do to the job that it stands for (`docs/retention.md`, R26).
///
/// For an unfinished job without a Workload Kueue makes a new, active one, and the job runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Bond {
    /// Nothing.
    #[default]
    None,
    /// It could run again as long as it is unfinished, so its end is waited for.
    UntilOwnerFinished,
    /// It would run again, and does not finish by itself: only job and object together can go.
    OnlyWithOwner,
}

/// What one definition says of an object.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The metadata.
    pub metadata: Metadata,
    /// How it finished; `None` while it has not.
    pub end: Option<End>,
    /// After how many seconds the kind's own controller deletes this very object.
    pub own_ttl: Option<Seconds>,
    /// What keeps it.
    pub guards: Guards,
    /// What its deletion would do.
    pub bond: Bond,
}

impl Reading {
    /// An object about which there is nothing more to say.
    pub(crate) fn new(metadata: Metadata, end: Option<End>) -> Self {
        Self { metadata, end, own_ttl: None, guards: Guards::default(), bond: Bond::None }
    }
}
