//! What a judgement says: which objects wait no longer, and why one may not be deleted.

use trainjob_api::time::Timestamp;

use super::{
    record::{Trip, TripId},
    standing::Standing,
};

/// What a judgement says of the objects that it counted. It has to be applied to all of them.
#[derive(Debug)]
pub struct Verdict {
    pub(super) acknowledged: Option<Trip>,
    pub(super) trip: Option<Trip>,
    pub(super) tripped: bool,
    /// Those that wait since then or earlier have waited long enough.
    pub(super) settled: Timestamp,
    pub(super) next: Option<Timestamp>,
}

impl Verdict {
    /// How an object of this namespace stands now that stood so.
    #[must_use]
    pub fn standing(&self, namespace: &str, standing: Standing) -> Standing {
        let is_in = |trip: &Option<Trip>| trip.as_ref().is_some_and(|trip| trip.stops(namespace));
        let settled = |since| since <= self.settled && !is_in(&self.trip);
        let is_let_go = match standing {
            Standing::Expected => true,
            Standing::Doubtful { since } => settled(since),
            Standing::Waiting { since } => is_in(&self.acknowledged) || settled(since),
        };
        if is_let_go { Standing::Expected } else { standing }
    }

    /// The trip that was acknowledged, for an event.
    #[must_use]
    pub const fn acknowledged(&self) -> Option<&Trip> {
        self.acknowledged.as_ref()
    }

    /// The id of the trip if it is new, for an event.
    #[must_use]
    pub fn tripped(&self) -> Option<&TripId> {
        self.trip.as_ref().filter(|_| self.tripped).map(|trip| &trip.id)
    }

    /// When to judge again if no object changes before; `None`: there is no need.
    #[must_use]
    pub const fn next(&self) -> Option<Timestamp> {
        self.next
    }
}

/// Why an object that is due may not be deleted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// What allows it is not known to be stored (R40).
    NotStored,
    /// The policy has tripped, there or everywhere (R42).
    Tripped,
    /// It is unexpected, and waits to be counted (R42).
    Waiting,
}
