//! What metrics say of finished objects (`docs/retention.md`, 7).
//!
//! A [tally](super::tally) is about one policy, for its status. These numbers are about a kind, and each object counts
//! once, for the policy in Enforce that governs it.

use std::collections::BTreeMap;

use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::{
    plan::{Plan, State},
    policies::Governed,
    uid::Uid,
};

use super::{found::is_to_be_deleted, tally::is_stuck};

/// What is counted of the finished objects of a kind.
#[derive(Debug, Default)]
pub struct Numbers {
    /// How many objects policies in Enforce govern, by state.
    pub states: BTreeMap<State, u64>,
    /// For how many seconds the object has been due that has been due longest; 0 if none is due.
    pub due_longest: i64,
    /// For how many seconds a hold has kept the object that it has kept longest beyond its time; 0 if none is held.
    pub held_longest: i64,
    /// How many objects have been terminating for more than ten minutes (R36).
    pub stuck: u64,
    /// How many objects are due by each policy, also by one in Audit.
    pub would_delete: BTreeMap<Uid, u64>,
    /// Up to which object it was counted; `None`: none was.
    pub(super) after: Option<ObjectKey>,
}

impl Numbers {
    /// Counts an object for the policy that governs it.
    pub(super) fn govern(&mut self, governed: &Governed<'_, '_>, plan: &Plan<'_>, now: Timestamp) {
        self.stuck += u64::from(is_stuck(governed.object, now));
        *self.states.entry(plan.state).or_default() += 1;
        let (since, longest) = match plan.state {
            State::Due => (plan.due.map(|due| due.at), &mut self.due_longest),
            State::Held => (plan.due_unheld, &mut self.held_longest),
            _ => return,
        };
        *longest = since.map_or(*longest, |since| now.since(since).max(*longest));
    }

    /// Counts an object for a policy that governs it, or would if it enforced.
    pub(super) fn expect(&mut self, plan: &Plan<'_>, now: Timestamp) {
        let is_due = plan.due.is_some_and(|due| due.at <= now);
        if is_due && is_to_be_deleted(plan.state) {
            *self.would_delete.entry(plan.policy.uid.clone()).or_default() += 1;
        }
    }
}
