//! One process: what it has in memory, and what it may do next.

use std::collections::{BTreeMap, BTreeSet};

use invariants::Millis;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Now,
    facts::ObjectKey,
    priority::{QueuePosition, begins, position},
    queue_position::Begins,
};

use super::{
    cache::Cache,
    streams::{Deliveries, Kind},
    under_way::{Fate, LateCheck, Pass},
};
use crate::{
    defect::{Defect, Memory},
    rule::Rule,
    server::Server,
    view::View,
};

/// What fails is not tried again sooner.
const SHORTEST_WAIT: Millis = 50;

/// One operator process.
#[derive(Debug)]
pub struct Operator {
    /// Which, counted in the order in which they started.
    pub process: u32,
    /// What it knows of the API server's time.
    pub time: Estimate,
    pub(super) keys: Vec<ObjectKey>,
    pub(super) cache: Cache,
    pub(super) deliveries: Deliveries,
    pub(super) initial_pods_listed: bool,
    pub(super) queue: BTreeSet<usize>,
    pub(super) passes: BTreeMap<usize, Pass>,
    /// Checks that no pass waits for any more.
    pub(super) late: Vec<LateCheck>,
    pub(super) requeues: BTreeMap<usize, Timestamp>,
    pub(super) retries: BTreeMap<usize, Millis>,
    /// When a failure armed the retry.
    pub(super) armed: BTreeMap<usize, Millis>,
    /// UIDs of the jobs that this process has seen to have ended.
    pub(super) ended: BTreeSet<String>,
    pub(super) defect: Option<Defect>,
    pub(super) memory: Memory,
}

/// What an operator knows of the API server's time. Its own clock matters to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// How far the earliest time that it takes for possible is behind; not negative.
    pub behind: Millis,
    /// How far the time that it takes for most likely is ahead; not less than the earliest.
    pub ahead: Millis,
    /// Whether it knows nothing yet, or the API server's clock has jumped.
    pub held: bool,
}

impl Estimate {
    /// What it makes of a moment.
    const fn of(self, now: Millis) -> Now {
        let likely = Timestamp((now + self.ahead).div_euclid(1_000));
        if self.held {
            return Now::Held { likely };
        }
        let earliest = Timestamp((now - self.behind).div_euclid(1_000));
        Now::Known { earliest, likely }
    }
}

/// What an operator may do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Begin a pass over this name.
    Begin(usize),
    /// Go on with the pass over this name.
    Continue(usize),
    /// Go on with this check that no pass waits for.
    Late(usize),
    /// Event that a timer of this name has come.
    Timer(usize),
}

impl Operator {
    /// A process that has just started and lists everything.
    #[must_use]
    pub fn new(process: u32, time: Estimate, server: &Server, defect: Option<Defect>) -> Self {
        let mut operator = Self {
            process,
            time,
            keys: server.slots.iter().map(|slot| slot.key.clone()).collect(),
            cache: Cache::default(),
            deliveries: Deliveries::default(),
            initial_pods_listed: false,
            queue: BTreeSet::new(),
            passes: BTreeMap::new(),
            late: Vec::new(),
            requeues: BTreeMap::new(),
            retries: BTreeMap::new(),
            armed: BTreeMap::new(),
            ended: BTreeSet::new(),
            defect,
            memory: Memory::default(),
        };
        for kind in Kind::ALL {
            operator.relist(kind, server);
        }
        operator
    }

    /// What it knows of a job; `None` when it knows of no such job.
    #[must_use]
    pub fn view(&self, key: &ObjectKey) -> Option<View> {
        self.cache.view(key)
    }

    /// The manifests that it knows make room for others, and the runtime does.
    pub fn evict(&mut self) {
        self.cache.evict();
    }

    /// The time of its decisions.
    #[must_use]
    pub const fn clock(&self, server: &Server) -> Now {
        self.time.of(server.now)
    }

    /// Everything that it may do next. Before the first lists are complete, only what begins early.
    #[must_use]
    pub fn turns(&self, server: &Server) -> Vec<Turn> {
        let free = |name: &&usize| !self.passes.contains_key(*name);
        let may = |name: &&usize| self.initial_pods_listed || self.begins_early(**name, server);
        let begin = self.queue.iter().filter(free).filter(may).copied().map(Turn::Begin);
        let under_way = self.passes.keys().copied().map(Turn::Continue);
        let clock = self.clock(server);
        let requeues =
            self.requeues.iter().filter(|(_, at)| clock.has_come(**at)).map(|(name, _)| *name);
        let retries = self.retries.iter().filter(|(_, at)| **at <= server.now);
        let timers: BTreeSet<_> = requeues.chain(retries.map(|(name, _)| *name)).collect();
        let late = (0..self.late_checks()).map(Turn::Late);
        under_way.chain(begin).chain(late).chain(timers.into_iter().map(Turn::Timer)).collect()
    }

    /// Takes one of its [turns](Self::turns); what is under way meets this fate.
    pub fn take(&mut self, turn: Turn, fate: Fate, server: &mut Server) {
        match turn {
            Turn::Begin(name) => self.begin(name, server),
            Turn::Continue(name) => self.go_on(name, fate, server),
            Turn::Late(number) => self.go_on_late(number, fate, server),
            Turn::Timer(name) => self.fire(name, server),
        }
    }

    fn fire(&mut self, name: usize, server: &mut Server) {
        let clock = self.clock(server);
        if self.requeues.get(&name).is_some_and(|at| clock.has_come(*at)) {
            self.requeues.remove(&name);
        }
        if self.retries.get(&name).is_some_and(|at| *at <= server.now) {
            self.retries.remove(&name);
            let armed = self.armed.remove(&name);
            let waited = armed.is_none_or(|armed| server.now - armed >= SHORTEST_WAIT);
            server.expect(Rule::BoundedPressure, waited, || "a job is tried again at once".into());
        }
        if self.position(name, clock).is_some() {
            self.queue.insert(name);
        }
    }

    /// When the next timer fires, by the API server's clock: a requeue, and a retry.
    #[must_use]
    pub fn next_timers(&self) -> (Option<Millis>, Option<Millis>) {
        let requeue_at = self.requeues.values().min();
        let requeue_at =
            requeue_at.map(|at| at.0.saturating_mul(1_000).saturating_add(self.time.behind));
        (requeue_at, self.retries.values().min().copied())
    }

    pub(super) fn position(&self, name: usize, clock: Now) -> Option<QueuePosition> {
        let view = self.cache.view(self.keys.get(name)?)?;
        let job_set = view.job_set.as_ref().map(|job_set| &job_set.facts);
        Some(position(&view.job.facts, job_set, &view.readings.pods, &self.cache.settings, clock))
    }

    fn begins_early(&self, name: usize, server: &Server) -> bool {
        let view = self.keys.get(name).and_then(|key| self.cache.view(key));
        let clock = self.clock(server);
        let (Some(view), Some(position)) = (view, self.position(name, clock)) else { return false };
        let job_set = view.job_set.as_ref().map(|job_set| &job_set.facts);
        let settings = &self.cache.settings;
        begins(&view.job.facts, job_set, position, settings, clock) == Begins::Early
    }

    pub(super) fn requeue_at(&mut self, name: usize, at: Option<Timestamp>) {
        match at {
            Some(at) => self.requeues.insert(name, at),
            None => self.requeues.remove(&name),
        };
    }

    pub(super) fn forget(&mut self, name: usize) {
        self.requeues.remove(&name);
        self.retries.remove(&name);
        self.armed.remove(&name);
    }
}
