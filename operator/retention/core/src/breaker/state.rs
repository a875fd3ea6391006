//! The breaker of one policy, from the start of a digest or of the process on.

use std::{num::NonZeroU64, sync::Arc};

use trainjob_api::time::Timestamp;

use super::{
    ledger::{Ledger, Row, WaitingObjects},
    limits::CLOCK_AHEAD,
    object::{DueObject, Hold, News},
    record::{Reason, Record, Scope, Trip, TripId},
    standing::{Looked, Standing},
};
use crate::uid::Uid;

/// What the breaker has to know of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyVersion {
    /// `metadata.generation`.
    pub generation: i64,
    /// The hash of what decides in the spec.
    pub digest: Arc<str>,
    /// `spec.breaker.maxCount`.
    pub max_count: NonZeroU64,
}

/// The breaker of a policy that enforces.
#[derive(Debug)]
pub struct Breaker {
    pub(super) version: PolicyVersion,
    /// All that is due.
    pub(super) ledger: Ledger,
    /// Until when all that was due has been looked at.
    looked: Timestamp,
    pub(super) trip: Option<Trip>,
    /// The number of the last id.
    last_id: Timestamp,
    /// What the status said at the start.
    basis: Option<Record>,
    /// Whether the clock has jumped since the start.
    has_jumped: bool,
    stored: Stored,
}

/// What goes with every judgement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occasion<'a> {
    pub(super) stock: u64,
    /// What the annotation names.
    pub(super) named: Option<&'a str>,
    pub(super) now: Timestamp,
}

/// What is known of the status.
#[derive(Debug, PartialEq, Eq)]
enum Stored {
    /// Nothing of this start.
    Nothing,
    /// The start, with this trip.
    Trip(Option<Trip>),
}

impl Breaker {
    /// Judges a policy that enforces, when the process is new or the policy was audited.
    ///
    /// `stored` is what its status says in the same version of the policy that `version` is from, `due` is everything that
    /// is due under it, and `stock` is the number of finished objects that it governs.
    #[must_use]
    pub fn start(
        version: PolicyVersion,
        stored: Option<&Record>,
        stock: u64,
        due: impl IntoIterator<Item = (Uid, DueObject)>,
        now: Timestamp,
    ) -> Self {
        let trip = stored.and_then(|record| record.trip.as_ref());
        let last_id = stored.map(|record| record.through).max(trip.map(|trip| trip.at));
        let same = stored.filter(|record| record.digest == version.digest);
        let mut breaker = Self {
            version,
            ledger: Ledger::new(due, |object| on_start(object, same, now)),
            looked: now,
            trip: same.and_then(|record| record.trip.clone()),
            last_id: last_id.unwrap_or(Timestamp(i64::MIN)),
            basis: stored.cloned(),
            has_jumped: false,
            stored: Stored::Nothing,
        };
        let is_ahead = same.is_some_and(|record| record.through > now.plus(CLOCK_AHEAD));
        let stepped = same.is_none() && is_clock_step(trip);
        if is_ahead || stepped {
            breaker.trip_for_clock(stock, now);
        } else if same.is_none() {
            breaker.begin(Occasion { stock, named: None, now });
        }
        breaker
    }

    /// Judges the policy again, when its digest is new or the breaker [is outdated](Self::is_outdated).
    ///
    /// The arguments are those of [`start`](Self::start).
    #[must_use]
    pub fn start_again(
        self,
        version: PolicyVersion,
        stored: Option<&Record>,
        stock: u64,
        due: impl IntoIterator<Item = (Uid, DueObject)>,
        now: Timestamp,
    ) -> Self {
        let mut breaker = Self::start(version, stored, stock, due, now);
        breaker.last_id = breaker.last_id.max(self.last_id);
        // No status may say yet that the clock jumped. Of a jump before the start, the status tells more than what was read
        // of it then.
        if self.has_jumped && is_clock_step(self.trip.as_ref()) {
            breaker.note_step(stock, now);
        }
        breaker
    }

    /// Whether the status says something else than what this breaker rests on, and nothing of it is stored yet.
    ///
    /// Then the start was made from an old version of the policy, or another leader still wrote.
    #[must_use]
    pub fn is_outdated(&self, status: Option<&Record>) -> bool {
        matches!(self.stored, Stored::Nothing) && self.basis.as_ref() != status
    }

    /// A digest that nothing was deleted under yet (R42).
    fn begin(&mut self, occasion: Occasion<'_>) {
        let count = self.ledger.len();
        if count > self.version.max_count.get() {
            self.ledger.hold_all(occasion.now);
            self.trip_in(Scope::Policy { reason: Reason::MassDelete, count }, occasion);
        }
    }

    /// Trips because the clock jumped (R46), with all that is due.
    pub fn step_clock(&mut self, stock: u64, now: Timestamp) {
        self.has_jumped = true;
        self.trip_for_clock(stock, now);
    }

    /// Takes in that the clock has jumped before this start, while nothing could be judged. That the status tells of a jump, or
    /// is ahead, may be because of this one: then there is one trip for both.
    pub fn note_step(&mut self, stock: u64, now: Timestamp) {
        self.has_jumped = true;
        if !is_clock_step(self.trip.as_ref()) {
            self.trip_for_clock(stock, now);
        }
    }

    /// Trips because the clock has jumped or is ahead, as far as the status tells.
    fn trip_for_clock(&mut self, stock: u64, now: Timestamp) {
        let count = self.ledger.len();
        self.looked = now;
        self.ledger.hold_all(now);
        let occasion = Occasion { stock, named: None, now };
        self.trip_in(Scope::Policy { reason: Reason::ClockStep, count }, occasion);
    }

    /// Trips, under an id that was never used.
    pub(super) fn trip_in(&mut self, scope: Scope, occasion: Occasion<'_>) {
        let Occasion { stock, named, now } = occasion;
        let PolicyVersion { generation, digest, .. } = &self.version;
        let mut number = now.max(self.last_id.plus(1));
        let mut id = TripId::new(*generation, digest, number);
        if Some(id.as_str()) == named {
            number = number.plus(1);
            id = TripId::new(*generation, digest, number);
        }
        self.last_id = number;
        self.trip = Some(Trip { id, at: now, stock, scope });
    }

    /// Takes over what may change without a new start: the generation and the limit.
    pub fn update(&mut self, generation: i64, max_count: NonZeroU64) {
        (self.version.generation, self.version.max_count) = (generation, max_count);
    }

    /// Takes in that an object is due, or still is, perhaps since another instant.
    pub fn observe(&mut self, uid: Uid, object: DueObject, news: News, now: Timestamp) {
        let known = self.ledger.get(&uid).filter(|row| row.object.stage == object.stage);
        let standing = match known.map(|row| row.standing) {
            Some(known @ (Standing::Expected { .. } | Standing::Waiting { .. })) => known,
            Some(Standing::Unknown { looked }) => Standing::of(&object, news, looked, now),
            None => Standing::of(&object, news, Looked::here(self.looked), now),
        };
        self.ledger.insert(uid, Row { object, standing });
    }

    /// Takes in that an object is not due any more: it is gone, is going, has changed, or another policy governs it.
    pub fn forget(&mut self, uid: &Uid) {
        self.ledger.remove(uid);
    }

    /// Takes in that all that was due until then has been [observed](Self::observe), with live watches (R40).
    ///
    /// An object that waits for its owner was observed as the last answer about the owner says.
    pub const fn looked(&mut self, until: Timestamp) {
        self.looked = until;
    }

    /// Whether an object may be deleted now.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn may_delete(&self, uid: &Uid) -> Result<(), Hold> {
        let row = self.ledger.get(uid).ok_or(Hold::NotDue)?;
        let namespace = &row.object.namespace;
        let stops = |trip: &Option<Trip>| trip.as_ref().is_some_and(|trip| trip.stops(namespace));
        if stops(&self.trip) {
            return Err(Hold::Tripped);
        }
        match (&self.stored, row.standing) {
            (_, Standing::Waiting { .. } | Standing::Unknown { .. }) => Err(Hold::Waiting),
            (Stored::Trip(stored), Standing::Expected { .. }) if !stops(stored) => Ok(()),
            (_, Standing::Expected { .. }) => Err(Hold::NotStored),
        }
    }

    /// What is to be stored now.
    #[must_use]
    pub fn record(&self) -> Record {
        let expected = self.ledger.earliest_expected(self.looked);
        Record {
            digest: Arc::clone(&self.version.digest),
            through: expected.map_or(self.looked, |due| due.min(self.looked)),
            trip: self.trip.clone(),
        }
    }

    /// Whether deletions wait until the record is stored: nothing of this start is, or another trip.
    #[must_use]
    pub fn awaits_storage(&self) -> bool {
        match &self.stored {
            Stored::Nothing => true,
            Stored::Trip(stored) => *stored != self.trip,
        }
    }

    /// Takes in that a record of this breaker was stored. Returns whether objects may go because of that which could not go
    /// before: it says more than how far everything was looked at.
    pub fn stored(&mut self, record: Record) -> bool {
        if record.digest != self.version.digest {
            return false;
        }
        let stored = Stored::Trip(record.trip);
        let is_new = self.stored != stored;
        self.stored = stored;
        is_new
    }

    /// The trip that the status shows, as far as is known.
    pub(super) fn shown_trip(&self) -> Option<&Trip> {
        match &self.stored {
            Stored::Nothing => self.basis.as_ref()?.trip.as_ref(),
            Stored::Trip(trip) => trip.as_ref(),
        }
    }

    /// What waits for an acknowledgement.
    #[must_use]
    pub const fn tripped(&self) -> Option<&Trip> {
        self.trip.as_ref()
    }

    /// How an object stands; `None` if it is not due.
    #[must_use]
    pub fn standing(&self, uid: &Uid) -> Option<Standing> {
        self.ledger.get(uid).map(|row| row.standing)
    }

    /// What is unexpected and waits where nothing has tripped.
    #[must_use]
    pub fn waiting(&self) -> Option<WaitingObjects> {
        let trip = self.trip.as_ref();
        self.ledger.waiting_where(|namespace| trip.is_none_or(|trip| !trip.stops(namespace)))
    }

    /// How many objects are unexpected and wait.
    #[must_use]
    pub fn unexpected(&self) -> u64 {
        self.ledger.waiting().total()
    }

    /// What it judges under.
    #[must_use]
    pub const fn version(&self) -> &PolicyVersion {
        &self.version
    }
}

/// How an object stands that is due at a start (R41); `same` is what an earlier leader stored under the same digest.
fn on_start(object: &DueObject, same: Option<&Record>, now: Timestamp) -> Standing {
    let Some(record) = same else { return Standing::Expected { since: now } };
    if record.trip.as_ref().is_some_and(|trip| trip.may_count(object)) {
        return Standing::Waiting { since: now };
    }
    Standing::of(object, News::Other, Looked::stored(record.through), now)
}

fn is_clock_step(trip: Option<&Trip>) -> bool {
    trip.is_some_and(|trip| trip.reason() == Reason::ClockStep)
}
