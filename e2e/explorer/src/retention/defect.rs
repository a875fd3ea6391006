//! Seeded defects: wrong programs, to see that the explorer finds out.
//!
//! None of them is in the product. Each changes what the state machine is told, or what is done with its answers.

/// A way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// A DELETE does not name the version.
    VersionNotFenced,
    /// A DELETE names neither the UID nor the version.
    UidNotFenced,
    /// Holds are not noticed.
    HoldIgnored,
    /// A deletion that waited is sent as it was planned first.
    NotPlannedAgain,
    /// A policy in Audit deletes.
    AuditIgnored,
    /// The most likely time is acted on.
    LikelyTimeActedOn,
    /// Nobody remembers trips after a restart.
    TripForgotten,
    /// Any trip is taken for acknowledged.
    AnyAcknowledgement,
    /// A record replaces what another version of the policy was judged for.
    StoreNotFenced,
    /// Nobody waits until a record is stored.
    StoreNotAwaited,
    /// A silent watch counts as live.
    SilenceIgnored,
    /// Leave is given faster than the rates say.
    RateIgnored,
    /// What failed is tried again at once, and nobody remembers that it failed.
    NoBackoff,
    /// What was accepted is sent again.
    AcceptedForgotten,
    /// What failed is never tried again.
    FailureForgotten,
    /// Owners count as gone.
    OwnerIgnored,
    /// A missing right counts as given.
    RightIgnored,
    /// Namespaces that are being deleted are not noticed.
    TerminatingIgnored,
    /// A policy that is deleted stays.
    PolicyStays,
    /// Objects that are deleted stay.
    GoneForgotten,
    /// Ends count as edits.
    EndsUnexpected,
    /// Timers are lost.
    TimerLost,
    /// Jumps of the clock are not noticed.
    ClockStepIgnored,
    /// No look is noted.
    LooksForgotten,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::VersionNotFenced,
        Self::UidNotFenced,
        Self::HoldIgnored,
        Self::NotPlannedAgain,
        Self::AuditIgnored,
        Self::LikelyTimeActedOn,
        Self::TripForgotten,
        Self::AnyAcknowledgement,
        Self::StoreNotFenced,
        Self::StoreNotAwaited,
        Self::SilenceIgnored,
        Self::RateIgnored,
        Self::NoBackoff,
        Self::AcceptedForgotten,
        Self::FailureForgotten,
        Self::OwnerIgnored,
        Self::RightIgnored,
        Self::TerminatingIgnored,
        Self::PolicyStays,
        Self::GoneForgotten,
        Self::EndsUnexpected,
        Self::TimerLost,
        Self::ClockStepIgnored,
        Self::LooksForgotten,
    ];
}
