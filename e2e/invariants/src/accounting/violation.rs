//! The invariants, and what it is to break one.

use std::fmt;

use crate::history::Millis;

/// What must hold in every run of the accounting program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// A UID enters `settling` at most once.
    A1,
    /// No Pod is released before a stored version has its UID in `settling`.
    A2,
    /// A UID leaves `settling` only after its Pod was gone or without finalizer.
    A3,
    /// Sums never fall, and replicated jobs add up to totals.
    A4,
    /// As many Pods are counted as UIDs ever were in `settling`.
    A5,
    /// At the end, counted and lost are all marked Pods.
    A6,
    /// Each share follows from the last version of the Pod before the store.
    A7,
    /// Bounds of what a record holds, and of how long a Pod is held.
    A8,
    /// No write that changes nothing, none of the status without a version.
    A9,
    /// Nothing is written but what is allowed.
    A10,
    /// A record stays.
    A12,
}

/// An invariant was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// By what became of this object.
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
