//! Seeded defects: what a wrong breaker, or a wrong use of it, would do.
//!
//! None is in the product. Each changes what the breaker is shown, or what its answers are taken for.

/// A way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defect {
    /// A start does not read the trip.
    TripForgotten,
    /// A start takes everything old for backlog.
    BacklogBoundless,
    /// A start knows of no backlog.
    BacklogForgotten,
    /// A start knows of nothing that waited.
    WaitingForgotten,
    /// What waits is stored as handed on.
    WaitingIsBacklog,
    /// A start takes any digest for the stored one.
    DigestIgnored,
    /// Nobody waits until a record is stored.
    StoreNotAwaited,
    /// A record replaces what another version of the policy was judged for.
    StoreNotFenced,
    /// Any annotation acknowledges any trip.
    AnyAcknowledgement,
    /// An acknowledgement lets go more than it names.
    AcknowledgementBoundless,
    /// An acknowledgement leaves behind what it let go.
    AcknowledgementForgotten,
    /// Unexpected objects go at once.
    NothingWaits,
    /// A trip in a namespace stops nothing.
    NamespaceGoesOn,
    /// A trip in a namespace stops all.
    NamespaceStopsAll,
    /// A late end is taken for an edit.
    EndsUnexpected,
    /// Any edit is taken for an end.
    AllExpected,
    /// An object that is looked at again is judged again.
    StandingForgotten,
    /// `enforcedThrough` moves on while the watch is dead.
    ThroughRunsAhead,
    /// `enforcedThrough` does not move.
    ThroughStands,
    /// An audited policy keeps its record.
    AuditKeepsRecord,
    /// A jump of the clock is not noticed.
    ClockIgnored,
}

pub(super) const ALL: [Defect; 21] = [
    Defect::TripForgotten,
    Defect::BacklogBoundless,
    Defect::BacklogForgotten,
    Defect::WaitingForgotten,
    Defect::WaitingIsBacklog,
    Defect::DigestIgnored,
    Defect::StoreNotAwaited,
    Defect::StoreNotFenced,
    Defect::AnyAcknowledgement,
    Defect::AcknowledgementBoundless,
    Defect::AcknowledgementForgotten,
    Defect::NothingWaits,
    Defect::NamespaceGoesOn,
    Defect::NamespaceStopsAll,
    Defect::EndsUnexpected,
    Defect::AllExpected,
    Defect::StandingForgotten,
    Defect::ThroughRunsAhead,
    Defect::ThroughStands,
    Defect::AuditKeepsRecord,
    Defect::ClockIgnored,
];
