//! When a policy trips, and when a trip ends (R42, R43).

use std::sync::Arc;

use trainjob_api::time::Timestamp;

use super::{
    ledger::Waiting,
    limits::{SETTLING, allowance},
    record::{Reason, Scope, Trip},
    state::{Breaker, Occasion},
};

/// What a judgement found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The trip that was acknowledged, for an event.
    pub acknowledged: Option<Trip>,
    /// The trip, if its id is new, for an event.
    pub tripped: Option<Trip>,
    /// When to judge again if no object changes before; `None`: there is no need.
    pub next: Option<Timestamp>,
}

impl Breaker {
    /// Judges what waits (R42, R43).
    ///
    /// `stock` is the number of finished objects that the policy governs, and `acknowledged` is the annotation. It is to
    /// be called after a start, after objects were observed or forgotten, with a new annotation, before a
    /// [record](Self::record) is made, and [when the last verdict says](Verdict::next). It goes through all objects that
    /// are due, so changes within a second are better judged together. To judge late lets nothing go.
    #[must_use]
    pub fn judge(&mut self, stock: u64, acknowledged: Option<&str>, now: Timestamp) -> Verdict {
        let id = self.trip.as_ref().map(|trip| trip.id.clone());
        let occasion = Occasion { stock, named: acknowledged, now };
        let acknowledged = self.acknowledge(occasion);
        let waiting = self.ledger.waiting();
        self.review(&waiting, occasion);
        self.trip_for(&waiting, occasion);
        let trip = self.trip.as_ref();
        self.ledger.let_go(SETTLING, |name| trip.is_none_or(|trip| !trip.stops(name)), now);
        let review = trip.map(|_| now.plus(SETTLING));
        Verdict {
            acknowledged,
            tripped: trip.filter(|trip| Some(&trip.id) != id.as_ref()).cloned(),
            next: review.into_iter().chain(self.ledger.next_settled(now)).min(),
        }
    }

    /// Ends the trip that somebody acknowledges; if it has grown too much for that, counts it again.
    ///
    /// A trip that no status shows cannot be meant, whatever the annotation says.
    fn acknowledge(&mut self, occasion: Occasion<'_>) -> Option<Trip> {
        let shown = self.shown_trip().map(|trip| trip.id.clone());
        let is_named = |trip: &mut Trip| {
            Some(trip.id.as_str()) == occasion.named && Some(&trip.id) == shown.as_ref()
        };
        let trip = self.trip.take_if(is_named)?;
        let waiting = self.ledger.waiting();
        if self.is_outgrown(&trip, &waiting) {
            self.trip_in(waiting.counted_anew(&trip.scope), occasion);
            return None;
        }
        self.ledger.let_go(0, |name| trip.stops(name), occasion.now);
        Some(trip)
    }

    /// Whether more wait than an acknowledgement would let go.
    fn is_outgrown(&self, trip: &Trip, waiting: &Waiting) -> bool {
        let outgrown = |now: u64, then: u64| now > allowance(then, self.version.max_count);
        match &trip.scope {
            Scope::Policy { count, .. } => outgrown(waiting.total(), *count),
            Scope::Namespaces(namespaces) => {
                namespaces.iter().any(|(name, count)| outgrown(waiting.within(name), *count))
            }
        }
    }

    /// Ends the trip where few are left, and counts it again if many came.
    fn review(&mut self, waiting: &Waiting, occasion: Occasion<'_>) {
        let max_count = self.version.max_count.get();
        let Some(mut trip) = self.trip.take() else { return };
        let is_over = match &mut trip.scope {
            Scope::Policy { reason: Reason::ClockStep, .. } => false,
            Scope::Policy { reason: Reason::MassDelete, .. } => waiting.total() <= max_count,
            Scope::Namespaces(namespaces) => {
                namespaces.retain(|name, _| waiting.within(name) > max_count);
                namespaces.is_empty()
            }
        };
        if is_over {
            return;
        }
        if occasion.now >= trip.at.plus(SETTLING) && self.is_outgrown(&trip, waiting) {
            self.trip_in(waiting.counted_anew(&trip.scope), occasion);
        } else {
            self.trip = Some(trip);
        }
    }

    /// Trips for what waits and was not tripped for.
    fn trip_for(&mut self, waiting: &Waiting, occasion: Occasion<'_>) {
        let max_count = self.version.max_count;
        let is_stopped = |name: &str| self.trip.as_ref().is_some_and(|trip| trip.stops(name));
        let scope = if matches!(&self.trip, Some(Trip { scope: Scope::Policy { .. }, .. })) {
            return;
        } else if waiting.is_too_much(max_count) {
            Scope::Policy { reason: Reason::MassDelete, count: waiting.total() }
        } else if waiting.full(max_count).all(|(name, _)| is_stopped(name)) {
            return;
        } else {
            let full = waiting.full(max_count);
            Scope::Namespaces(full.map(|(name, count)| (Arc::clone(name), count)).collect())
        };
        self.trip_in(scope, occasion);
    }
}
