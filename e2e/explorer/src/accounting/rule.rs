//! What has to hold in a schedule of the accounting program.

/// The invariants of `docs/accounting.md`, 10, that the core can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Each UID enters `settling` of a record at most once.
    A1,
    /// No Pod is released before it is counted, nor let go before it may be.
    A2,
    /// A UID leaves `settling` only after its Pod was gone or without finalizer.
    A3,
    /// Sums never fall, and replicated jobs add up to totals.
    A4,
    /// As many Pods are counted as UIDs ever were in `settling`.
    A5,
    /// In the end all Pods are counted or lost, and the record says so.
    A6,
    /// Each share follows from the last version of the Pod before the store.
    A7,
    /// No Pod is held for too long.
    A8,
    /// No write changes nothing, and none is without a version; in the end nothing is written.
    A9,
    /// A disturbed run ends in the record of the undisturbed one.
    A11,
    /// A record stays.
    A12,
    /// Nothing panics.
    NoPanic,
}
