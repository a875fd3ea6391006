//! What must hold in every run of the accounting program (`docs/accounting.md`, 10), whatever happens to it.
//!
//! The judge is given every version of every marked Pod and of every record, and what the program wrote. What a Pod is charged
//! for was read by somebody else than the program.
//!
//! Not judged here: A11, which takes two runs, and A13, which is about objects before there is anything to count.

mod charge;
mod gpu_seconds;
mod history;
mod pods;
mod records;
mod violation;

use std::collections::BTreeSet;

pub use charge::Charge;
pub use gpu_seconds::gpu_seconds;
pub use history::{AccountingHistory, PodVersion, RecordVersion, Written};
pub use violation::{Invariant, Violation};

use crate::history::Millis;

/// What judging a run depends on.
#[derive(Debug, Clone)]
pub struct Terms {
    /// UIDs of Pods that went unprotected: let go by the valve, swept, drained, or forced by a person.
    pub excused: BTreeSet<String>,
    /// Whether people delete records, or their namespaces.
    pub records_go: bool,
    /// How long a Pod that has ended and is deleted may be held.
    pub longest_hold: Millis,
    /// By how much the program's watch of Pods may be behind, in milliseconds, so that a Pod may be counted by an older
    /// version (A7).
    pub watch_behind: Millis,
}

impl Default for Terms {
    /// Those of an undisturbed program with its default configuration on a busy machine: 5 minutes and 15 seconds (AH4), and
    /// a watch that is a second behind.
    fn default() -> Self {
        let excused = BTreeSet::new();
        Self { excused, records_go: false, longest_hold: 315_000, watch_behind: 1_000 }
    }
}

/// Everything in this history that breaks an invariant.
#[must_use]
pub fn check(history: &AccountingHistory, terms: &Terms) -> Vec<Violation> {
    let mut found = records::check(history, terms);
    found.extend(pods::check(history, terms));
    found.sort_by_key(|violation| violation.at);
    found
}
