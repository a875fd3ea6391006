//! An object that is due, and whether that was to be expected (R41).

use std::sync::Arc;

use trainjob_api::time::Timestamp;

use crate::plan::Plan;

/// An object that is due under the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueObject {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Since when it is due.
    pub due: Timestamp,
    /// What of it is due.
    pub stage: Stage,
}

/// What of an object is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its Pods, which go before it.
    Pods,
    /// The object, or the owner that goes in its place, with what is left of its Pods.
    Object,
}

impl DueObject {
    /// What a plan of `now` says is due of an object in this namespace; `None` if nothing is.
    ///
    /// What a guard delays is due. The plan has to be made with all answers: that of the owner may move the due instant,
    /// and Pods are due until they are known to be gone.
    #[must_use]
    pub fn of(plan: &Plan<'_>, namespace: &Arc<str>, now: Timestamp) -> Option<Self> {
        let stages = [(plan.due, Stage::Object), (plan.pods_due, Stage::Pods)];
        let mut due = stages.into_iter().filter_map(|(due, stage)| Some((due?.at, stage)));
        let (due, stage) = due.find(|(due, _)| *due <= now)?;
        Some(Self { namespace: Arc::clone(namespace), due, stage })
    }
}

/// Why an object was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The watch brought its end: it was known to be unfinished, or not known at all.
    ///
    /// An object that a list shows, or a watch that selects by what an edit can change, may have ended long ago.
    End,
    /// Anything else: its timer, an edit, a list.
    Other,
}

/// How it stands with an object that is due (R41).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It was to be expected, or was let go.
    Expected {
        /// Since when that is known.
        since: Timestamp,
    },
    /// It was not, and waits to be counted.
    Waiting {
        /// Since when that is known.
        since: Timestamp,
    },
}

/// Why an object may not be deleted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It is not due.
    NotDue,
    /// What allows it is not known to be stored (R40).
    NotStored,
    /// The policy has tripped, there or everywhere (R42).
    Tripped,
    /// It is unexpected, and waits to be counted (R42).
    Waiting,
}
