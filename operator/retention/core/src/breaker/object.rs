//! An object that is due, and what made it so.

use std::sync::Arc;

use trainjob_api::time::Timestamp;

use crate::plan::{Act, Delay, Due, Plan, Question};

/// An object that is due under the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueObject {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Since when it is due.
    pub due: Timestamp,
    /// What of it is due.
    pub stage: Stage,
    /// What that has to do with its owner.
    pub owner: OwnerEnd,
}

/// What the end of its owner has to do with an object that is due (R24).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerEnd {
    /// Nothing.
    Irrelevant,
    /// It is due since its owner ended.
    Decides,
    /// Nobody has asked for its owner yet, so it may not be due at all.
    Unknown,
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
    /// What a guard delays is due. The plan has to be made with all answers, however old: that of the owner may move the
    /// due instant, and Pods are due until they are known to be gone.
    #[must_use]
    pub fn of(plan: &Plan<'_>, namespace: &Arc<str>, now: Timestamp) -> Option<Self> {
        let stages = [(plan.due, Stage::Object), (plan.pods_due, Stage::Pods)];
        let mut due = stages.into_iter().filter_map(|(due, stage)| Some((due?, stage)));
        let (due, stage) = due.find(|(due, _)| due.at <= now)?;
        let owner = OwnerEnd::of(plan, due);
        Some(Self { namespace: Arc::clone(namespace), due: due.at, stage, owner })
    }
}

impl OwnerEnd {
    fn of(plan: &Plan<'_>, due: Due) -> Self {
        match (plan.act, due.delay) {
            (Act::Ask(Question::Owner), _) => Self::Unknown,
            (_, Some(Delay::Owner)) => Self::Decides,
            (_, Some(Delay::Hold(_)) | None) => Self::Irrelevant,
        }
    }
}

/// Why an object was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The watch brought its end: it was known to be unfinished, or not known at all. Or an answer brought that of its
    /// owner, which had not ended before.
    ///
    /// An object that a list shows, or a watch that selects by what an edit can change, may have ended long ago.
    End,
    /// Anything else: its timer, an edit, a list.
    Other,
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
    /// It is unexpected, and waits to be counted (R42), or it is not known whether it is.
    Waiting,
}
