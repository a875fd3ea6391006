//! What must hold in every run of the retention engine (`docs/retention.md`), whatever happens to it.
//!
//! As for the operator, the judge is given every version of every object, of every policy, and every request of the engine.
//! It states the rules once more and by itself, as far as tests use them: a policy with what it does not know of must not be
//! given to it.
//!
//! An engine decides on what its watches have shown, and what was stored is noted by another watch. So a deletion is a
//! violation only if it was wrong at each instant of the moments around it ([`Terms::staleness`]).

mod objects;
mod picture;
mod rules;
mod terms;
mod violation;

pub use terms::Terms;
pub use violation::{Invariant, Violation};

pub use crate::target::{
    Action, Delete, End, Limits, Matching, Outcome, Owned, Policy, Rule, Target, Trip, Ttl,
};
use crate::{history::History, index::Index};

/// Everything in this history of a retention engine that breaks an invariant.
#[must_use]
pub fn check(history: &History, terms: &Terms) -> Vec<Violation> {
    let index = Index::of(history);
    let run = rules::Run::new(&index, terms);
    let mut found: Vec<_> = rules::CHECKS.iter().flat_map(|check| check(&run)).collect();
    found.sort_by_key(|violation| violation.at);
    found
}
