//! What must hold in every run of the operator, whatever happens to it.
//!
//! The judge knows nothing of how the operator works. It is given a [`History`]: every version of every
//! object that somebody else watched, and every request that the operator sent. From these alone it
//! says which of the rules in [`Rule`] were broken, where, and by what. Histories come from real
//! clusters (a watch beside the operator, and the log of a proxy or of the API server's audit) and from
//! the schedule explorer, so that simulated and real runs are judged by the same words.

pub mod accounting;
pub mod history;
mod index;
mod outcome;
mod rbac;
pub mod retention;
mod rules;
mod target;
mod violation;

pub use history::{
    Answer, Change, Clock, Condition, History, Hold, Job, JobSet, Millis, Object, Request, State,
    Terms,
};
pub use outcome::Outcome;
pub use rbac::{RbacRule, undeclared_requests, unused_rules};
pub use violation::{Rule, Violation};

/// Everything in this history that breaks a rule, but for those that need more than one history to be
/// judged: L6 is told by [`Outcome::differences`], and the lists of S9 by [`undeclared_requests`] and
/// [`unused_rules`].
#[must_use]
pub fn check(history: &History) -> Vec<Violation> {
    let index = index::Index::of(history);
    let mut found: Vec<Violation> = rules::CHECKS.iter().flat_map(|check| check(&index)).collect();
    found.sort_by_key(|violation| violation.at);
    found
}
