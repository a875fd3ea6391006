//! Seeded defects: what a wrong breaker, or a wrong use of it, would do.
//!
//! None is in the product. Each changes what the breaker is shown, or what its answers are taken for.

/// A way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Defect {
    /// A start does not read the trip.
    TripForgotten,
    /// A start expects everything, however old.
    StartExpectsAll,
    /// `enforcedThrough` passes what was expected and is still there.
    ThroughPassesBacklog,
    /// `enforcedThrough` is held back by what waits.
    ThroughHeldByWaiting,
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
    /// A look is noted while the watch is dead.
    LooksRunAhead,
    /// No look is noted.
    LooksForgotten,
    /// An audited policy keeps its record.
    AuditKeepsRecord,
    /// A jump of the clock is not noticed.
    ClockIgnored,
    /// The limit is three times what the policy says, once it is judged.
    LimitRaised,
}

pub(super) const ALL: [Defect; 21] = [
    Defect::TripForgotten,
    Defect::StartExpectsAll,
    Defect::ThroughPassesBacklog,
    Defect::ThroughHeldByWaiting,
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
    Defect::LooksRunAhead,
    Defect::LooksForgotten,
    Defect::AuditKeepsRecord,
    Defect::ClockIgnored,
    Defect::LimitRaised,
];
