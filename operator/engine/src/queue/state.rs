//! What waits, what is worked on, and what is armed.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use trainjob_api::time::Timestamp;
use trainjob_core::queue_position::{Begins, QueueKey, QueuePosition, QueuePriority};

use super::{
    next::Next,
    placement::Placement,
    timers::Timers,
    turns::{Attempt, Line, Turns},
};
use crate::{
    clock::Clock,
    places::Places,
    shares::{Operation, Share, Shares},
};

/// The longest sleep between two looks at the clock. What is learned of the API server's time is noticed this late.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Room for so many keys that wait is kept when none does.
const KEPT_ROOM: usize = 4_096;

/// Who works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nobody: nothing is taken in, and no timer fires.
    Standby,
    /// This process, on what [begins early](Begins::Early).
    Early,
    /// This process, on everything.
    Open,
}

#[derive(Debug)]
pub(super) struct State<K, P> {
    priorities: BTreeMap<P, Turns<K>>,
    pub(super) waiting: HashMap<K, Ticket<P>>,
    running: HashSet<K>,
    again: HashMap<K, (QueuePosition<P>, Attempt)>,
    pub(super) requeues: Timers<K, Timestamp>,
    pub(super) retries: Timers<K, Instant>,
    pub(super) turn: u8,
    tickets: u64,
    pub(super) phase: Phase,
    /// Keys that were noted and begin first, once everything is worked on.
    pub(super) noted: HashSet<K>,
    pub(super) closed: bool,
}

/// Where a key waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket<P> {
    position: QueuePosition<P>,
    number: u64,
    attempt: Attempt,
    operation: Option<Operation>,
}

impl<P: QueuePriority> Ticket<P> {
    /// The priority that its key waits with.
    #[cfg(test)]
    pub(super) const fn priority(&self) -> P {
        self.position.priority
    }

    fn line<K: QueueKey>(&self, key: &K) -> Line {
        Line { namespace: Arc::clone(key.namespace()), operation: self.operation }
    }

    /// News of a key are a better reason to look at it than that it failed.
    fn goes_before(&self, position: QueuePosition<P>, attempt: Attempt) -> bool {
        (self.position, self.attempt) <= (position, attempt)
    }
}

impl<K: QueueKey, P: QueuePriority> State<K, P> {
    /// On standby.
    pub(super) fn standby() -> Self {
        Self {
            priorities: BTreeMap::new(),
            waiting: HashMap::new(),
            running: HashSet::new(),
            again: HashMap::new(),
            requeues: Timers::default(),
            retries: Timers::default(),
            turn: 0,
            tickets: 0,
            phase: Phase::Standby,
            noted: HashSet::new(),
            closed: false,
        }
    }

    /// From now on somebody works. Returns what was noted until then.
    pub(super) fn enter(&mut self, phase: Phase) -> Vec<K> {
        self.phase = phase;
        std::mem::take(&mut self.noted).into_iter().collect()
    }

    /// Puts a key where it belongs, if it is worked on already. True when it is armed, and that before all others.
    pub(super) fn place(
        &mut self,
        key: K,
        placement: Placement<P>,
        attempt: Attempt,
        now: Instant,
    ) -> bool {
        let begins = match self.phase {
            Phase::Standby => false,
            Phase::Early => placement.begins == Begins::Early,
            Phase::Open => true,
        };
        if !begins {
            return false;
        }
        let is_first = self.rises(&key, placement.rises_at);
        self.add(key, placement.position, attempt, now);
        is_first
    }

    /// Remembers where a key belongs that is not worked on yet. True when it is armed, and that before all others.
    pub(super) fn note(&mut self, key: K, placement: Option<Placement<P>>) -> bool {
        let is_first = self.requeues.set(&key, placement.and_then(|it| it.rises_at));
        match placement.map(|it| it.begins) {
            Some(Begins::Early | Begins::First) => {
                self.noted.insert(key);
            }
            Some(Begins::Last) | None => {
                self.noted.remove(&key);
            }
        }
        is_first
    }

    /// Since when keys of this priority wait.
    pub(super) fn since(&self, priority: P) -> impl Iterator<Item = Instant> {
        let turns = self.priorities.get(&priority).into_iter();
        turns.flat_map(|turns| turns.waiters().map(|(_, since)| *since))
    }

    /// Nobody works on a key any more. Where it waits, if it was put again meanwhile.
    pub(super) fn ended(&mut self, key: &K) -> Option<(QueuePosition<P>, Attempt)> {
        self.running.remove(key);
        self.again.remove(key)
    }

    /// The keys whose time has come, once somebody works.
    pub(super) fn take_due(&mut self, clock: &Clock) -> Vec<(K, Attempt)> {
        let mut due = Vec::new();
        if self.phase == Phase::Standby {
            return due;
        }
        let (reached, monotonic) = (clock.now().reached(), Instant::now());
        while let Some(key) = reached.and_then(|reached| self.requeues.take(reached)) {
            due.push((key, Attempt::First));
        }
        while let Some(key) = self.retries.take(monotonic) {
            due.push((key, Attempt::Repeated));
        }
        due
    }

    /// Brings a key back when it rises, if it does and nothing brings it back before. True when that is before all others.
    fn rises(&mut self, key: &K, at: Option<Timestamp>) -> bool {
        let Some(at) = at else { return false };
        let is_earlier = self.requeues.at(key).is_none_or(|armed| at < armed);
        is_earlier && self.requeues.set(key, Some(at))
    }

    /// How long to sleep until the time of the next key may have come.
    pub(super) fn sleep(&mut self, clock: &Clock) -> Duration {
        if self.phase == Phase::Standby {
            return LONGEST_SLEEP;
        }
        let now = Instant::now();
        let requeue_at = self.requeues.earliest().and_then(|at| clock.until(at));
        let retry = self.retries.earliest().map(|at| at.saturating_duration_since(now));
        requeue_at.into_iter().chain(retry).chain([LONGEST_SLEEP]).min().unwrap_or(LONGEST_SLEEP)
    }

    pub(super) fn add(
        &mut self,
        key: K,
        position: QueuePosition<P>,
        attempt: Attempt,
        now: Instant,
    ) {
        if self.running.contains(&key) {
            let again = self.again.entry(key).or_insert((position, attempt));
            *again = (position, attempt).min(*again);
            return;
        }
        if let Some(ticket) = self.waiting.get(&key).copied() {
            // What waits for a flow was planned before the news.
            if ticket.operation.is_none() && ticket.goes_before(position, attempt) {
                return;
            }
            let turn = (ticket.position.due, ticket.number);
            let turns = self.priorities.entry(ticket.position.priority).or_default();
            turns.remove(ticket.attempt, &ticket.line(&key), turn);
            let (position, attempt) = (position, attempt).min((ticket.position, ticket.attempt));
            return self.insert(key, position, attempt, None, now);
        }
        self.insert(key, position, attempt, None, now);
    }

    pub(super) fn insert(
        &mut self,
        key: K,
        position: QueuePosition<P>,
        attempt: Attempt,
        operation: Option<Operation>,
        now: Instant,
    ) {
        self.tickets += 1;
        let ticket = Ticket { position, number: self.tickets, attempt, operation };
        let (line, turn) = (ticket.line(&key), (position.due, ticket.number));
        self.waiting.insert(key.clone(), ticket);
        let turns = self.priorities.entry(position.priority).or_default();
        turns.insert(attempt, line, turn, (key, now));
    }

    pub(super) fn pop(&mut self, places: &Arc<Places<P>>, now: Instant) -> Option<Next<K, P>> {
        let mut shares = places.shares();
        for priority in P::order(self.turn) {
            let room = shares.room(priority);
            if let Some(room) = room
                && let Some(next) = self.pop_from(priority, room, places, &mut shares, now)
            {
                return Some(next);
            }
            if room != Some(Share::Own) {
                self.call_back(priority, places, &mut shares, now);
            }
        }
        None
    }

    fn pop_from(
        &mut self,
        priority: P,
        room: Share,
        places: &Arc<Places<P>>,
        shares: &mut Shares<P>,
        now: Instant,
    ) -> Option<Next<K, P>> {
        let may_go = |line: &Line| share_of(line, priority, room, shares, now);
        let turns = self.priorities.get_mut(&priority)?;
        let (line, share, (key, since)) = turns.pop(may_go)?;
        self.turn = self.turn.wrapping_add(1);
        let attempt = self.waiting.remove(&key).map_or(Attempt::First, |it| it.attempt);
        if self.waiting.is_empty() {
            // What was needed for a hundred thousand is not needed again soon.
            self.waiting.shrink_to(KEPT_ROOM);
        }
        self.running.insert(key.clone());
        let namespace = Arc::clone(key.namespace());
        let place = places.take(shares, priority, namespace, share, line.flow());
        let waited = now.saturating_duration_since(since);
        Some(Next { key, priority, waited, attempt, place })
    }

    /// Calls a place back that is on loan, if somebody of another namespace or priority only waits for a place.
    fn call_back(&self, priority: P, places: &Places<P>, shares: &mut Shares<P>, now: Instant) {
        let Some(turns) = self.priorities.get(&priority) else { return };
        let needs_place =
            |line: &Line| share_of(line, priority, Share::Own, shares, now) == Some(Share::Own);
        let needed = |borrower: (P, &str)| {
            turns.lines().any(|line| (priority, &*line.namespace) != borrower && needs_place(line))
        };
        let place = shares.overdue_loans(priority, now).find(|(_, borrower)| needed(*borrower));
        if let Some(place) = place.map(|(place, _)| place) {
            places.call_back(shares, place);
        }
    }
}

/// Which place the first of this line may have where there is such room for its priority.
fn share_of<P: QueuePriority>(
    line: &Line,
    priority: P,
    room: Share,
    shares: &Shares<P>,
    now: Instant,
) -> Option<Share> {
    let share = shares.share(priority, room, &line.namespace, now)?;
    let admits = line.flow().is_none_or(|flow| shares.admits(&flow, share, now));
    admits.then_some(share)
}
