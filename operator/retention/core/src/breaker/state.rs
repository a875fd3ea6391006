//! The breaker of one policy, from the start of a digest or of the process on.

use std::sync::Arc;

use trainjob_api::time::Timestamp;

use super::{
    limits::{CLOCK_AHEAD, SETTLING, SLACK, allowance},
    record::{Reason, Record, Scope, Trip, TripId},
    standing::{Arrival, Due, News, Standing},
    verdict::{Hold, Verdict},
    waiting::Waiting,
};

/// What the breaker has to know of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyVersion {
    /// `metadata.generation`.
    pub generation: i64,
    /// The hash of what decides in the spec.
    pub digest: Arc<str>,
    /// `spec.breaker.maxCount`, 1 or more.
    pub max_count: u64,
}

/// The breaker of a policy that enforces.
#[derive(Debug)]
pub struct Breaker {
    version: PolicyVersion,
    through: Timestamp,
    trip: Option<Trip>,
    doubt: Doubt,
    /// The number of the last id.
    last_id: Timestamp,
    /// What the status said at the start.
    basis: Option<Record>,
    stored: Stored,
}

/// What goes with every judgement.
#[derive(Debug, Clone, Copy)]
struct Occasion<'a> {
    stock: u64,
    /// What the annotation names.
    named: Option<&'a str>,
    now: Timestamp,
}

/// By how much a start found more than the backlog (R41).
#[derive(Debug, Clone, Copy, Default)]
struct Doubt {
    /// So many of the doubtful objects are no backlog.
    excess: u64,
    /// So many of these were known to wait before the start, so that a next start doubts no more than this one.
    before: u64,
}

/// What is known of the status.
#[derive(Debug)]
enum Stored {
    /// Nothing of this start.
    Nothing,
    /// The start, with this trip.
    Trip(Option<Trip>),
}

/// What a start says of the objects that were due then. It has to be applied to all of them.
#[derive(Debug)]
pub struct Start {
    now: Timestamp,
    through: Timestamp,
    trip: Option<Trip>,
    old: Old,
}

/// What a start makes of objects that an earlier leader should have deleted (R41).
#[derive(Debug, Clone, Copy)]
enum Old {
    /// They are its backlog.
    Backlog,
    /// Few of them are not.
    Doubtful,
    /// Many of them are not.
    Unexpected,
}

impl Start {
    /// How an object of this namespace stands that was due at the start.
    #[must_use]
    pub fn standing(&self, namespace: &str, due: Timestamp) -> Standing {
        let since = self.now;
        if self.trip.as_ref().is_some_and(|trip| trip.may_count(namespace, due)) {
            return Standing::Waiting { since };
        }
        match self.old {
            _ if is_in_time(due, self.through) => Standing::Expected,
            Old::Backlog => Standing::Expected,
            Old::Doubtful => Standing::Doubtful { since },
            Old::Unexpected => Standing::Waiting { since },
        }
    }
}

/// Whether an object so long due is expected without another look.
const fn is_in_time(due: Timestamp, through: Timestamp) -> bool {
    due.0 >= through.plus(-SLACK).0
}

impl Breaker {
    /// Judges a policy that enforces, when the process is new or the policy was audited.
    ///
    /// `stored` is what its status says in the same version of the policy that `version` is from, `rows` are the
    /// namespaces and due times of all that is due under it, and `stock` is the number of finished objects it governs.
    #[must_use]
    pub fn start<'a>(
        version: PolicyVersion,
        stored: Option<&Record>,
        stock: u64,
        rows: impl Iterator<Item = (&'a Arc<str>, Timestamp)>,
        now: Timestamp,
    ) -> (Self, Start) {
        let trip = stored.and_then(|record| record.trip.as_ref());
        let last_id = stored.map(|record| record.through).max(trip.map(|trip| trip.at));
        let mut breaker = Self {
            version,
            through: now,
            trip: None,
            doubt: Doubt::default(),
            last_id: last_id.unwrap_or(Timestamp(i64::MIN)),
            basis: stored.cloned(),
            stored: Stored::Nothing,
        };
        let same = stored.filter(|record| record.digest == breaker.version.digest);
        let is_ahead = same.is_some_and(|record| record.through > now.plus(CLOCK_AHEAD));
        let stepped = trip.is_some_and(|trip| trip.reason() == Reason::ClockStep);
        let start = match same {
            Some(record) if !is_ahead => breaker.resume(record, rows, now),
            _ if is_ahead || stepped => breaker.step_clock(stock, rows.count(), now),
            _ => breaker.begin(stock, rows.count(), now),
        };
        (breaker, start)
    }

    /// Judges the policy again, when its digest is new or the breaker [is outdated](Self::is_outdated).
    ///
    /// The arguments are those of [`start`](Self::start).
    #[must_use]
    pub fn start_again<'a>(
        self,
        version: PolicyVersion,
        stored: Option<&Record>,
        stock: u64,
        rows: impl Iterator<Item = (&'a Arc<str>, Timestamp)> + Clone,
        now: Timestamp,
    ) -> (Self, Start) {
        let due = rows.clone().count();
        let (mut breaker, start) = Self::start(version, stored, stock, rows, now);
        breaker.last_id = breaker.last_id.max(self.last_id);
        let stepped = |trip: &Option<Trip>| {
            trip.as_ref().is_some_and(|trip| trip.reason() == Reason::ClockStep)
        };
        // No status may say yet that the clock jumped.
        let old = self.basis.and_then(|basis| basis.trip);
        if stepped(&self.trip) && self.trip != old && !stepped(&breaker.trip) {
            let start = breaker.step_clock(stock, due, now);
            return (breaker, start);
        }
        (breaker, start)
    }

    /// Whether the status says something else than what this breaker rests on, and nothing of it is stored yet.
    ///
    /// Then the start was made from an old version of the policy, or another leader still wrote.
    #[must_use]
    pub fn is_outdated(&self, status: Option<&Record>) -> bool {
        matches!(self.stored, Stored::Nothing) && self.basis.as_ref() != status
    }

    /// A digest that nothing was deleted under yet (R42).
    fn begin(&mut self, stock: u64, due: usize, now: Timestamp) -> Start {
        let count = due as u64;
        if count > self.version.max_count {
            let occasion = Occasion { stock, named: None, now };
            self.trip(Scope::Policy { reason: Reason::MassDelete, count }, occasion);
        }
        self.started(Old::Backlog, now)
    }

    /// A digest that an earlier leader enforced (R41).
    fn resume<'a>(
        &mut self,
        record: &Record,
        rows: impl Iterator<Item = (&'a Arc<str>, Timestamp)>,
        now: Timestamp,
    ) -> Start {
        self.through = record.through;
        self.trip.clone_from(&record.trip);
        let counted = |namespace: &str, due| {
            record.trip.as_ref().is_some_and(|trip| trip.may_count(namespace, due))
        };
        let standing = Standing::Waiting { since: now };
        let old = rows
            .filter(|(name, due)| !is_in_time(*due, record.through) && !counted(name, *due))
            .map(|(namespace, due)| Due { namespace, due, standing });
        let old = Waiting::of(old, now);
        let excess = old.total().saturating_sub(record.backlog);
        let limit = record.waiting.saturating_add(self.version.max_count);
        if excess == 0 {
            return self.started(Old::Backlog, now);
        }
        if old.trips(self.version.max_count) && excess <= limit {
            self.doubt = Doubt { excess, before: excess.saturating_sub(self.version.max_count) };
            return self.started(Old::Doubtful, now);
        }
        self.started(Old::Unexpected, now)
    }

    /// Trips because the clock jumped (R46), with all that is due.
    ///
    /// What was waiting before waits with the rest, so `due` is the number of everything that is due under the policy.
    #[must_use]
    pub fn step_clock(&mut self, stock: u64, due: usize, now: Timestamp) -> Start {
        (self.through, self.doubt) = (now, Doubt::default());
        let occasion = Occasion { stock, named: None, now };
        self.trip(Scope::Policy { reason: Reason::ClockStep, count: due as u64 }, occasion);
        self.started(Old::Backlog, now)
    }

    fn started(&self, old: Old, now: Timestamp) -> Start {
        Start { now, through: self.through, trip: self.trip.clone(), old }
    }

    /// Takes over what may change without a new start: the generation and the limit.
    pub fn update(&mut self, generation: i64, max_count: u64) {
        self.version = PolicyVersion { generation, max_count, ..self.version.clone() };
    }

    /// Moves `enforcedThrough` (R40).
    ///
    /// All that was due until `through` has a standing, and the watches were live then.
    pub const fn advance(&mut self, through: Timestamp) {
        self.through = through;
    }

    /// How an object stands that was looked at at `now` and is due (R41).
    #[must_use]
    pub fn standing(&self, arrival: Arrival, now: Timestamp) -> Standing {
        let expected = is_in_time(arrival.due, self.through) || arrival.news == News::End;
        let new = if expected { Standing::Expected } else { Standing::Waiting { since: now } };
        arrival.before.unwrap_or(new)
    }

    /// Whether an object of this namespace that stands so may be deleted now.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn may_delete(&self, namespace: &str, standing: Standing) -> Result<(), Hold> {
        let stops = |trip: &Option<Trip>| trip.as_ref().is_some_and(|trip| trip.stops(namespace));
        if stops(&self.trip) {
            return Err(Hold::Tripped);
        }
        match (&self.stored, standing) {
            (_, Standing::Waiting { .. } | Standing::Doubtful { .. }) => Err(Hold::Waiting),
            (Stored::Trip(stored), _) if !stops(stored) => Ok(()),
            _ => Err(Hold::NotStored),
        }
    }

    /// Judges what waits (R42, R43).
    ///
    /// `rows` are all objects that are due under the policy, `stock` is the number of finished objects it governs, and
    /// `acknowledged` is the annotation. It is to be called after objects began to wait or changed, with a new annotation,
    /// before a record is made, and [when the last verdict says](Verdict::next). To call it late makes nothing go.
    #[must_use]
    pub fn judge<'a>(
        &mut self,
        stock: u64,
        rows: impl Iterator<Item = Due<'a>>,
        acknowledged: Option<&str>,
        now: Timestamp,
    ) -> Verdict {
        let settled = now.plus(-SETTLING);
        let mut waiting = Waiting::of(rows, settled);
        let id = self.trip.as_ref().map(|trip| trip.id.clone());
        let occasion = Occasion { stock, named: acknowledged, now };
        let acknowledged = self.acknowledge(&mut waiting, occasion);
        self.review(&waiting, occasion);
        self.trip_for(&waiting, occasion);
        let review = self.trip.as_ref().map(|_| now.plus(SETTLING));
        let settles = waiting.unsettled().map(|since| since.plus(SETTLING));
        Verdict {
            acknowledged,
            tripped: self.trip.as_ref().is_some_and(|trip| Some(&trip.id) != id.as_ref()),
            trip: self.trip.clone(),
            settled,
            next: review.into_iter().chain(settles).min(),
        }
    }

    /// Ends the trip that somebody acknowledges; if it has grown too much for that, counts it again.
    fn acknowledge(&mut self, waiting: &mut Waiting, occasion: Occasion<'_>) -> Option<Trip> {
        let trip = self.trip.take_if(|trip| Some(trip.id.as_str()) == occasion.named)?;
        if self.is_outgrown(&trip, waiting) {
            self.trip(waiting.counted_anew(&trip.scope), occasion);
            return None;
        }
        waiting.forget(&trip);
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
        let Some(mut trip) = self.trip.take() else { return };
        let is_over = match &mut trip.scope {
            Scope::Policy { reason: Reason::ClockStep, .. } => false,
            Scope::Policy { .. } => waiting.total() <= self.version.max_count,
            Scope::Namespaces(namespaces) => {
                namespaces.retain(|name, _| waiting.within(name) > self.version.max_count);
                namespaces.is_empty()
            }
        };
        if is_over {
            return;
        }
        if occasion.now >= trip.at.plus(SETTLING) && self.is_outgrown(&trip, waiting) {
            self.trip(waiting.counted_anew(&trip.scope), occasion);
        } else {
            self.trip = Some(trip);
        }
    }

    /// Trips for what waits and was not tripped for.
    fn trip_for(&mut self, waiting: &Waiting, occasion: Occasion<'_>) {
        let max_count = self.version.max_count;
        let stopped = |name: &str| self.trip.as_ref().is_some_and(|trip| trip.stops(name));
        let is_whole = matches!(&self.trip, Some(Trip { scope: Scope::Policy { .. }, .. }));
        let scope = if is_whole {
            return;
        } else if waiting.is_too_much(max_count) {
            Scope::Policy { reason: Reason::MassDelete, count: waiting.total() }
        } else if waiting.full(max_count).all(|(name, _)| stopped(name)) {
            return;
        } else {
            let full = waiting.full(max_count);
            Scope::Namespaces(full.map(|(name, count)| (Arc::clone(name), count)).collect())
        };
        self.trip(scope, occasion);
    }

    fn trip(&mut self, scope: Scope, occasion: Occasion<'_>) {
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

    /// What is to be stored now, of all that is due.
    #[must_use]
    pub fn record<'a>(&self, rows: impl Iterator<Item = Due<'a>>) -> Record {
        let counted = |row: &Due<'_>| {
            self.trip.as_ref().is_some_and(|trip| trip.may_count(row.namespace, row.due))
        };
        let (mut backlog, mut doubtful, mut waiting) = (0_u64, 0_u64, 0_u64);
        for row in rows.filter(|row| !is_in_time(row.due, self.through) && !counted(row)) {
            match row.standing {
                Standing::Expected => backlog += 1,
                Standing::Doubtful { .. } => doubtful += 1,
                Standing::Waiting { .. } => waiting += 1,
            }
        }
        Record {
            digest: Arc::clone(&self.version.digest),
            through: self.through,
            backlog: backlog.saturating_add(doubtful.saturating_sub(self.doubt.excess)),
            waiting: waiting.saturating_add(doubtful.min(self.doubt.before)),
            trip: self.trip.clone(),
        }
    }

    /// Takes in that a record of this breaker was stored.
    pub fn stored(&mut self, record: Record) {
        if record.digest == self.version.digest {
            self.stored = Stored::Trip(record.trip);
        }
    }

    /// What it waits for an acknowledgement of.
    #[must_use]
    pub const fn tripped(&self) -> Option<&Trip> {
        self.trip.as_ref()
    }

    /// The digest that it judges under.
    #[must_use]
    pub const fn version(&self) -> &PolicyVersion {
        &self.version
    }
}
