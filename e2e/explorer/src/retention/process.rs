//! A replica of the program: the state machine of `trainjob-retention`, driven as its tasks drive it.
//!
//! What is real is all that decides: [`ClusterState`] with the core. What stands in for the rest are a queue without an
//! order, watches that lag, and requests that are under way until the schedule says what becomes of them.

mod deliver;
mod due;
mod pass;
mod request;
mod since;
mod status;
mod written;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use trainjob_api::time::Timestamp;
use trainjob_core::Now;
use trainjob_retention::{
    cluster_state::{ClusterState, Deletion, Effects, SOON, Survey},
    config::Target,
    key::{Key, TargetId},
};
use trainjob_retention_core::finished::Definitions;

pub use self::{
    request::{Answer, Request, UnderWay, owner_answer},
    since::Since,
    written::{Written, policy_uid},
};
use super::{
    defect::Defect,
    objects::object_key,
    rules::{JobId, Owners, PolicyId, View},
    server::{SOURCES, Server},
};

/// How far the clock may jump without a trip (R46), with what a replica may be wrong, in milliseconds.
pub const JUMP: i64 = 400_000;

/// The only kind that is deleted here.
pub const TARGET: TargetId = TargetId(0);

/// A replica.
#[derive(Debug)]
pub struct Process {
    /// Which, of all that ever ran.
    pub number: u32,
    /// What it knows, and decides by.
    pub state: ClusterState,
    /// What its watches have told it.
    pub view: View,
    /// Whether it acts.
    pub leads: bool,
    /// What waits to be looked at.
    pub ready: BTreeSet<Key>,
    /// What is sent and not answered.
    pub under_way: Vec<UnderWay>,
    /// How far it may be from the API server's time, in milliseconds: how much earlier, and how much later; `None`: it does
    /// not know it.
    pub clock: Option<(i64, i64)>,
    /// Until when it waits after a jump of the clock, by a clock that nobody sets, in milliseconds.
    pub pauses_until: i64,
    /// The jumps that it has not been told to go on after, by the UIDs of policies.
    pub stepped: BTreeSet<u64>,
    /// Those of them that it has not noticed yet. If the clock is back by then, nothing has happened.
    pub unnoticed: BTreeSet<u64>,
    /// How far the clock had moved when it noticed the time last.
    noticed: Option<i64>,
    /// When it heard of each watch last, in milliseconds.
    pub heard: [Option<i64>; SOURCES],
    /// Until when each watch is silent.
    pub frozen_until: [i64; SOURCES],
    /// Whether it was told that it may not delete.
    pub lacks_right: bool,
    /// Policies by UID: under which digest it knows them, and what is due since then.
    pub since: BTreeMap<u64, Since>,
    /// The same of the digests that it has judged last.
    judged_since: BTreeMap<u64, Since>,
    /// What it was told of owners.
    owners: Owners,
    /// Policies by UID of which it has stored a record.
    pub has_stored: BTreeSet<u64>,
    /// Jobs whose deletion was accepted, and which its watch has not shown to be gone.
    pub accepted: BTreeSet<u64>,
    /// When it was told last that a deletion failed, by UID.
    pub failed: BTreeMap<u64, i64>,
    /// When it sent deletions, by the UID of the policy.
    pub sent: BTreeMap<u64, VecDeque<i64>>,
    /// Since when it knows the rate of a policy.
    pub rates: BTreeMap<u64, (u32, i64)>,
    /// What the status of policies says, as far as it writes it.
    pub written: BTreeMap<PolicyId, Written>,
    defect: Option<Defect>,
    definitions: Definitions,
    positions: [Option<usize>; SOURCES],
    /// Which reading of Jobs it lists.
    epoch: Option<u64>,
    timers: BTreeMap<Key, Timestamp>,
    retries: BTreeMap<Key, i64>,
    /// Keys of which a pass is under way, and whether they were put again meanwhile.
    passes: BTreeMap<Key, bool>,
    planned: Vec<(Key, Deletion)>,
    /// When it counted last.
    counted: Option<i64>,
    survey: Option<(Survey, Now)>,
    /// How often leave was asked for, with [`Defect::RateIgnored`].
    leave_asked: u32,
}

impl Process {
    /// A new one, which knows nothing. All policies together delete so many objects a second at most.
    #[must_use]
    pub fn new(number: u32, per_second: Option<f64>, defect: Option<Defect>) -> Self {
        let target = Target {
            api_group: "batch".to_owned(),
            kind: "Job".to_owned(),
            resource: "jobs".to_owned(),
            pods: false,
            owner_delete: false,
        };
        let excluded = ["kube-system".into()].into();
        let mut state = ClusterState::new(&[target], excluded, per_second);
        state.stand_by();
        Self {
            number,
            state,
            view: View::default(),
            leads: false,
            ready: BTreeSet::new(),
            under_way: Vec::new(),
            clock: Some((0, 0)),
            pauses_until: 0,
            stepped: BTreeSet::new(),
            unnoticed: BTreeSet::new(),
            noticed: None,
            heard: [None; SOURCES],
            frozen_until: [0; SOURCES],
            lacks_right: false,
            since: BTreeMap::new(),
            judged_since: BTreeMap::new(),
            owners: Owners::new(),
            has_stored: BTreeSet::new(),
            accepted: BTreeSet::new(),
            failed: BTreeMap::new(),
            sent: BTreeMap::new(),
            rates: BTreeMap::new(),
            written: BTreeMap::new(),
            defect,
            definitions: Definitions::default(),
            positions: [None; SOURCES],
            epoch: None,
            timers: BTreeMap::new(),
            retries: BTreeMap::new(),
            passes: BTreeMap::new(),
            planned: Vec::new(),
            counted: None,
            survey: None,
            leave_asked: 0,
        }
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// What it takes the time to be.
    #[must_use]
    pub fn now(&self, server: &Server) -> Now {
        let (early, late) = self.clock.unwrap_or((0, 0));
        let likely = Timestamp((server.now + late).div_euclid(1_000));
        if self.clock.is_none() || server.monotonic() < self.pauses_until {
            return Now::Held { likely };
        }
        if self.has(Defect::LikelyTimeActedOn) {
            return Now::at(likely);
        }
        Now::Known { earliest: Timestamp((server.now - early).div_euclid(1_000)), likely }
    }

    /// A clock that nobody sets.
    fn monotonic(&self, server: &Server) -> Duration {
        let shown =
            if self.has(Defect::ClockStepIgnored) { server.now } else { server.monotonic() };
        Duration::from_millis(u64::try_from(shown).unwrap_or_default())
    }

    /// It has been elected: everything that it knows of is evaluated.
    pub fn lead(&mut self, server: &Server) {
        self.leads = true;
        let effects = self.state.take_over();
        self.apply(effects);
        self.counts_anew(server);
    }

    fn apply(&mut self, effects: Effects) {
        for key in effects.look {
            self.wake(key);
        }
    }

    fn wake(&mut self, key: Key) {
        // The queue of a replica that does not lead takes nothing in.
        if !self.leads {
            return;
        }
        if let Some(again) = self.passes.get_mut(&key) {
            *again = true;
        } else {
            self.ready.insert(key);
        }
    }

    /// Puts what it is time for.
    pub fn ring(&mut self, server: &Server) {
        let (now, monotonic) = (self.now(server), server.monotonic());
        let due = self.timers.iter().filter(|(_, at)| now.has_come(**at)).map(|(key, _)| key);
        let retried = self.retries.iter().filter(|(_, at)| **at <= monotonic).map(|(key, _)| key);
        let keys: BTreeSet<Key> = due.chain(retried).cloned().collect();
        for key in keys {
            self.timers.remove(&key);
            self.retries.remove(&key);
            if self.state.position(&key, now).is_some() {
                self.wake(key);
            }
        }
    }

    /// Has an object looked at when that instant comes; `None`: not any more. If it is far, surveys find it in time.
    fn look_at(&mut self, key: &Key, at: Option<Timestamp>, server: &Server) {
        let soon = self.now(server).stamp().plus(SOON);
        match at.filter(|at| *at <= soon && self.leads && !self.has(Defect::TimerLost)) {
            Some(at) => self.timers.insert(key.clone(), at),
            None => self.timers.remove(key),
        };
    }

    /// When it rings next, by the API server's clock, in milliseconds; `None`: not by itself.
    #[must_use]
    pub fn rings_at(&self, server: &Server) -> Option<i64> {
        let (early, _) = self.clock.unwrap_or((0, 0));
        let timers =
            self.timers.values().map(|at| at.0.saturating_mul(1_000).saturating_add(early));
        timers.chain(self.retries.values().map(|at| at.saturating_add(server.stepped))).min()
    }

    /// Evaluates so many objects, after judging; what every second does. False if there was nothing to evaluate.
    pub fn evaluate(&mut self, server: &Server, count: usize) -> bool {
        self.notice_time(server);
        let (now, monotonic) = (self.now(server), self.monotonic(server));
        let _ = self.state.judge(now, monotonic);
        self.note_due(server);
        let Some(slice) = self.state.evaluate(count, now) else { return false };
        for (key, at) in slice.later {
            self.look_at(&key, Some(at), server);
        }
        for (_, key) in slice.look {
            self.wake(key);
        }
        true
    }

    /// Compares the API server's clock with the one that nobody sets.
    fn notice_time(&mut self, server: &Server) {
        let (now, monotonic) = (self.now(server), self.monotonic(server));
        if now.reached().is_none() {
            return;
        }
        let before = self.noticed.replace(server.stepped);
        let unnoticed = std::mem::take(&mut self.unnoticed);
        if before.is_none_or(|before| (before - server.stepped).abs() <= JUMP) {
            self.stepped.retain(|policy| !unnoticed.contains(policy));
        }
        self.state.notice_time(now, monotonic);
    }

    /// The key of a Job that it may look at.
    #[must_use]
    pub fn key(id: JobId) -> Key {
        Key { target: TARGET, object: object_key(id) }
    }
}
