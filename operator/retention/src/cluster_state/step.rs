//! What is to be done about an object now.

use std::{sync::Arc, time::Duration};

use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    facts::Controller,
    outcome::Outcome,
    plan::{Due, PodsBefore},
    policy::Propagation,
    uid::Uid,
};

/// What is to be done about an object now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// There is no such object any more, or it has not finished.
    Gone,
    /// Nothing, until something is known that is not known yet; then it is looked at again.
    Idle,
    /// Nothing until then.
    Wait(Wait),
    /// It stands in the line of its policy, and is looked at again when it has leave.
    Line,
    /// Find out how its controller owner is.
    AskOwner(Controller),
    /// Find out whether it is released: a TrainJob with this UID that its deadline failed.
    AskRelease(Uid),
    /// Delete those of its Pods that go before it.
    DeletePods(Box<PodsDeletion>),
    /// Delete it.
    Delete(Box<Deletion>),
}

impl Step {
    /// A wait ends with another one that ends before it, and is none if that is no wait.
    pub(super) fn or_before(self, other: impl FnOnce() -> Self) -> Self {
        let Self::Wait(wait) = self else { return self };
        match other() {
            Self::Wait(other) => Self::Wait(wait.or_before(other)),
            step => step,
        }
    }
}

/// When an object is looked at again, if nothing changes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wait {
    /// At this instant of the API server's clock.
    pub until: Option<Timestamp>,
    /// After so long.
    pub longest: Option<Duration>,
}

impl Wait {
    /// Until this one or the other ends, whichever is first.
    pub(super) fn or_before(self, other: Self) -> Self {
        let until = self.until.into_iter().chain(other.until).min();
        let longest = self.longest.into_iter().chain(other.longest).min();
        Self { until, longest }
    }
}

/// A deletion. It is fenced: it is refused for any other object, and for any other version of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// Which of all objects of the name.
    pub uid: Uid,
    /// In which version.
    pub resource_version: Box<str>,
    /// How dependents go.
    pub propagation: Propagation,
    /// The owner that is deleted instead, if the rule says so. Its UID is the fence; its version is read right before.
    pub owner: Option<Controller>,
    /// The policy that wants it.
    pub policy: Arc<str>,
    /// The rule of it that fits.
    pub rule: Arc<str>,
    /// Since when, and why then.
    pub due: Due,
    /// How the object finished.
    pub outcome: Outcome,
}

/// A deletion of the Pods of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodsDeletion {
    /// The object, why its Pods go, and since when. Each Pod has a fence of its own.
    pub of: Deletion,
    /// Which Pods.
    pub pods: PodsBefore,
}

/// What came of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It was accepted.
    Accepted,
    /// There is nothing of the name. An API server that starts says so of all custom resources, so it shows nothing.
    Missing,
    /// The object has another version, or is another one.
    Conflict,
    /// There are too many requests; it may be sent again after so long.
    Throttled(Duration),
    /// It failed otherwise.
    Failed,
}

/// The longest wait that a throttled request is made to wait.
const LONGEST_THROTTLE: Duration = Duration::from_secs(30);
/// The shortest wait after a conflict: the next version is on its way.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

impl Reply {
    /// How long it is until the next try, if that does not depend on how often it failed.
    #[must_use]
    pub fn wait(self) -> Option<Duration> {
        match self {
            Self::Conflict => Some(AFTER_CONFLICT),
            Self::Throttled(wait) => Some(wait.min(LONGEST_THROTTLE)),
            Self::Accepted | Self::Missing | Self::Failed => None,
        }
    }
}
