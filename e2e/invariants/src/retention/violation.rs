//! The invariants, and what it is to break one.

use std::fmt;

use crate::history::Millis;

/// What must hold in every run of the retention engine. All but the last: nothing bad happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// The only request that changes a target is DELETE (R3).
    OnlyDeletes,
    /// Each DELETE names the UID and the version of an object that was there (R33).
    Preconditions,
    /// A policy in Enforce governs what is deleted (R20). Neither one in Audit nor none does.
    Governed,
    /// What is deleted was due (R30 to R32, R21).
    Due,
    /// What R30 exempts is left alone: what is unfinished, terminating, a copy of MultiKueue, or in a namespace that is
    /// terminating or excluded.
    Exempt,
    /// Nothing is deleted where a policy has tripped (R42), nor while the clock is suspect (R45, R46).
    Held,
    /// What was accepted is not sent again (R34).
    Once,
    /// No more deletions are under way at the same time than are configured (R35).
    Few,
    /// What is due is gone in the end.
    Absence,
}

/// An invariant was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// By what became of this object: kind, namespace and name.
    pub object: String,
    /// When.
    pub at: Millis,
    /// How, as the rest of a sentence that begins with the object.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, object, at, what } = self;
        write!(f, "{invariant:?}: {object} {what} (at {at})")
    }
}
