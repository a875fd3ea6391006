//! A cluster, the replicas on it, and what can happen to them.

use std::time::Duration;

use trainjob_retention::{
    cluster_state::{Reply, Verb},
    key::Key,
};
use trainjob_retention_core::breaker::Reason;

use super::{
    judge::{ALL_PER_SECOND, Judge, Rule, ends_step},
    objects::job_key,
    options::Options,
    process::{Answer, JUMP, Process, Request, UnderWay, owner_answer, policy_uid},
    report::Report,
    rules::PolicyId,
    server::{Deleted, SOURCES, Server},
};

/// When schedules begin, in milliseconds.
const BEGIN: i64 = 1_800_000_000_000;
/// How long nothing is decided after a jump of the clock (R46), in milliseconds.
const PAUSE: i64 = 60_000;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is answered.
    Arrives,
    /// Nothing yet.
    Later,
    /// It is lost.
    Lost,
    /// It is done, and the answer is lost.
    Unanswered,
    /// It arrives when nobody waits for it any more.
    Stray,
    /// It is refused.
    Refused(Refusal),
}

/// How a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 500.
    Failed,
    /// 403 by admission.
    Denied,
    /// 404.
    Missing,
    /// 409.
    Conflict,
    /// 429.
    Throttled,
}

/// A cluster and its replicas.
#[derive(Debug)]
pub struct World {
    /// The API server.
    pub server: Server,
    /// The replicas. The first is not always the leader.
    pub processes: Vec<Process>,
    /// Requests that nobody waits for any more, and whose they are.
    pub strays: Vec<(u32, Request)>,
    /// Who watches over the rules.
    pub judge: Judge,
    /// Whether nobody edits anything.
    pub is_calm: bool,
    /// Whether no replica begins anew, so that controllers may tell ends late.
    pub is_steady: bool,
    /// What happened so far.
    pub report: Report,
    /// Ids of trips that statuses showed.
    pub trips: Vec<(u64, String)>,
    /// When each replica ends that has lost the election, by a clock that nobody sets, in milliseconds.
    deposed: Vec<(u32, i64)>,
    options: Options,
    begun: u32,
}

impl World {
    /// An empty cluster with two replicas, of which one leads.
    #[must_use]
    pub fn new(options: Options, is_calm: bool) -> Self {
        let mut world = Self {
            server: Server::new(BEGIN),
            processes: Vec::new(),
            strays: Vec::new(),
            judge: Judge::default(),
            is_calm,
            is_steady: false,
            report: Report::default(),
            trips: Vec::new(),
            deposed: Vec::new(),
            options,
            begun: 0,
        };
        for _ in 0..2 {
            let process = world.new_process();
            world.processes.push(process);
        }
        if let Some(first) = world.processes.first_mut() {
            first.lead(&world.server);
        }
        world
    }

    fn new_process(&mut self) -> Process {
        self.begun += 1;
        Process::new(self.begun, Some(f64::from(ALL_PER_SECOND)), self.options.defect)
    }

    /// Writes down what happens, if that is asked for.
    pub fn note(&mut self, what: impl FnOnce() -> String) {
        self.report.steps += 1;
        if self.options.trace {
            let now = self.server.now - BEGIN;
            let (seconds, rest) = (now.div_euclid(1_000), now.rem_euclid(1_000));
            self.report.trace.push(format!("{seconds:>6}.{rest:03} {}", what()));
        }
    }

    /// Time passes, in milliseconds.
    pub fn wait(&mut self, milliseconds: i64) {
        self.server.now += milliseconds;
        for process in &mut self.processes {
            process.bookmarks(&self.server);
            process.ring(&self.server);
        }
        let monotonic = self.server.monotonic();
        let ended: Vec<u32> = self
            .deposed
            .iter()
            .filter(|(_, until)| *until <= monotonic)
            .map(|(it, _)| *it)
            .collect();
        self.deposed.retain(|(_, until)| *until > monotonic);
        for number in ended {
            if let Some(index) = self.processes.iter().position(|it| it.number == number) {
                self.crash(index);
            }
        }
    }

    /// The API server's clock jumps.
    pub fn jump(&mut self, milliseconds: i64) {
        self.note(|| format!("the clock jumps by {milliseconds} ms"));
        self.server.now += milliseconds;
        self.server.stepped += milliseconds;
        for process in &mut self.processes {
            let was_known =
                process.clock.is_some() && self.server.monotonic() >= process.pauses_until;
            process.pauses_until = self.server.monotonic() + PAUSE;
            if !was_known || milliseconds.abs() <= JUMP {
                continue;
            }
            for policy in process.view.policies.values().filter(|policy| policy.spec.enforces) {
                let is_judged = process.state.record(&policy_uid(policy.uid)).is_some();
                if is_judged && process.stepped.insert(policy.uid) {
                    process.unnoticed.insert(policy.uid);
                }
            }
        }
    }

    /// Everything that a second brings for a replica.
    pub fn tick(&mut self, index: usize, count: usize) {
        if let Some(process) = self.processes.get_mut(index) {
            process.evaluate(&self.server, count);
        }
        self.give_leave(index);
        self.maintain(index, count);
    }

    /// Questions about rights, counts and statuses, which only the leader cares for.
    pub fn maintain(&mut self, index: usize, count: usize) {
        let Some(process) = self.processes.get_mut(index).filter(|it| it.leads) else { return };
        process.ask_rights(&self.server);
        process.survey(count, &self.server);
        process.write_statuses(&self.server);
    }

    /// Gives leave to all that may have it now. True if somebody waits for it.
    pub fn give_leave(&mut self, index: usize) -> bool {
        loop {
            let process = self.processes.get_mut(index).filter(|it| it.leads);
            let Some(process) = process else { return false };
            match process.give_leave(&self.server) {
                Ok(key) => self.pass(index, &key),
                Err(wait) => return wait.is_some(),
            }
        }
    }

    /// A pass over an object.
    pub fn pass(&mut self, index: usize, key: &Key) {
        let Some(process) = self.processes.get_mut(index) else { return };
        let Some(deletion) = process.pass(key, &self.server) else { return };
        if let Some(id) = job_key(&key.object) {
            self.judge.sends(process, &self.server, id, &deletion);
        }
        process.delete(key, &deletion, &self.server);
        let number = process.number;
        self.report.requests += 1;
        self.note(|| format!("{number} deletes {}: {deletion:?}", key.object));
    }

    /// A pass over an object for whose request no place is free: it passes again later.
    pub fn pass_in_vain(&mut self, index: usize, key: &Key) {
        let Some(process) = self.processes.get_mut(index) else { return };
        if process.pass(key, &self.server).is_some() {
            process.ready.insert(key.clone());
        }
    }

    /// Something becomes of a request that is under way.
    pub fn network(&mut self, index: usize, number: usize, fate: Fate) {
        let Some(process) = self.processes.get(index) else { return };
        let Some(under_way) = process.under_way.get(number).cloned() else { return };
        if under_way.is_lost || under_way.answer.is_some() {
            if let Some(process) = self.processes.get_mut(index) {
                process.answer(number, &self.server);
            }
            return;
        }
        let sender = process.number;
        let (answer, is_lost) = match fate {
            Fate::Later => return,
            Fate::Lost => (None, true),
            Fate::Stray => {
                self.strays.push((sender, under_way.request));
                (None, true)
            }
            Fate::Arrives => (Some(self.execute(sender, &under_way.request)), false),
            Fate::Unanswered => (Some(self.execute(sender, &under_way.request)), true),
            Fate::Refused(refusal) => (Some(refused(&under_way, refusal)), false),
        };
        let process = self.processes.get_mut(index);
        let under_way = process.and_then(|process| process.under_way.get_mut(number));
        if let Some(under_way) = under_way {
            (under_way.answer, under_way.is_lost) = (answer, is_lost);
        }
    }

    /// A request arrives that nobody waits for.
    pub fn stray(&mut self, number: usize) {
        if number < self.strays.len() {
            let (sender, request) = self.strays.swap_remove(number);
            self.execute(sender, &request);
        }
    }

    /// The API server answers a request.
    fn execute(&mut self, sender: u32, request: &Request) -> Answer {
        match request {
            Request::Delete { id, fence, view, at, .. } => {
                if !self.server.may_delete {
                    return Answer::Forbidden;
                }
                let deleted = self.server.delete_job(*id, fence);
                self.note(|| format!("{sender}'s DELETE of {id:?}: {deleted:?}"));
                Answer::Deletion(match deleted {
                    Deleted::Accepted(job) => {
                        self.report.deletions += 1;
                        self.judge.accepted(&job, view, *at, &self.server);
                        self.judge.edited(&self.server, None);
                        Reply::Accepted
                    }
                    Deleted::Missing => Reply::Missing,
                    Deleted::Conflict => {
                        self.report.conflicts += 1;
                        Reply::Conflict
                    }
                })
            }
            Request::Owner { owner, .. } => Answer::Owner(owner_answer(*owner, &self.server)),
            Request::Status { .. } => self.store(sender, request),
            Request::Right(right) => {
                let asks = right.verb == Verb::Delete;
                Answer::Right(!asks || self.server.may_delete)
            }
        }
    }

    fn store(&mut self, sender: u32, request: &Request) -> Answer {
        let Request::Status { id, uid, version, record, since } = request else {
            return Answer::Failed;
        };
        let before = self.server.view.policies.get(id).and_then(|policy| policy.record.clone());
        let stored = self.server.store_record(*id, (*uid, *version), record.clone());
        self.note(|| format!("{sender} stores of {id:?}: {record:?}: {stored:?}"));
        let Some(version) = stored else {
            self.report.conflicts += 1;
            return Answer::Deletion(Reply::Conflict);
        };
        let records = [before.as_ref(), record.as_ref()];
        self.judge.stored(sender, &self.server, (*uid, since.as_ref()), records);
        let process = self.processes.iter_mut().find(|it| it.number == sender);
        if let Some(process) = process.filter(|_| ends_step(records)) {
            process.stepped.remove(uid);
        }
        if let Some(trip) = record.as_ref().and_then(|record| record.trip.as_ref()) {
            self.report.trips += 1;
            let is_founded = !self.is_calm || trip.reason() == Reason::ClockStep;
            self.judge.check(is_founded, Rule::TripFounded, || format!("{trip:?} of {id:?}"));
            self.trips.push((*uid, trip.id.to_string()));
        }
        Answer::Stored(version)
    }

    /// Somebody acknowledges the trip that a status shows.
    pub fn acknowledge(&mut self, id: PolicyId) {
        let Some(policy) = self.server.view.policies.get(&id) else { return };
        let trip = policy.record.as_ref().and_then(|record| record.trip.as_ref());
        let Some(trip) = trip.map(|trip| trip.id.to_string()) else { return };
        self.judge.acknowledged(policy.uid);
        self.note(|| format!("{trip} of {id:?} is acknowledged"));
        self.server.edit_policy(id, |policy| policy.acknowledged = Some(trip));
    }

    /// A replica ends, and another begins that knows nothing.
    pub fn crash(&mut self, index: usize) {
        let new = self.new_process();
        let Some(process) = self.processes.get_mut(index) else { return };
        let old = std::mem::replace(process, new);
        self.report.crashes += 1;
        self.note(|| format!("{} ends", old.number));
        let open = old.under_way.into_iter().filter(|it| it.answer.is_none() && !it.is_lost);
        self.strays.extend(open.map(|it| (old.number, it.request)));
    }

    /// A replica becomes the leader. The one that leads goes on for a while if it does not know of it yet.
    pub fn elect(&mut self, index: usize, lingers: i64) {
        let until = self.server.monotonic() + lingers;
        for other in (0..self.processes.len()).filter(|other| *other != index) {
            let Some(old) = self.processes.get(other).filter(|it| it.leads) else { continue };
            if lingers > 0 {
                self.report.two_leaders = true;
                self.deposed.push((old.number, until));
            } else {
                self.crash(other);
            }
        }
        let Some(process) = self.processes.get_mut(index).filter(|it| !it.leads) else { return };
        process.lead(&self.server);
        let number = process.number;
        self.note(|| format!("{number} leads"));
    }

    /// Ends all replicas but the leader. If there is none, one is elected.
    pub fn keep_one_leader(&mut self) {
        for (number, _) in std::mem::take(&mut self.deposed) {
            self.processes.retain(|process| process.number != number);
        }
        if self.processes.is_empty() {
            let process = self.new_process();
            self.processes.push(process);
        }
        if self.processes.iter().all(|process| !process.leads) {
            self.elect(0, 0);
        }
        self.processes.retain(|process| process.leads);
    }

    /// Everybody is told everything, and everything that is under way is answered.
    pub fn settle(&mut self) {
        for index in 0..self.processes.len() {
            for _ in 0..1_000 {
                let Some(process) = self.processes.get_mut(index) else { break };
                let Some(source) = (0..SOURCES).find(|it| process.lags(*it, &self.server)) else {
                    break;
                };
                process.deliver(source, &self.server);
            }
            let count = self.processes.get(index).map_or(0, |process| process.under_way.len());
            for number in (0..count).rev() {
                self.network(index, number, Fate::Arrives);
                self.network(index, number, Fate::Arrives);
            }
        }
    }
}

fn refused(under_way: &UnderWay, refusal: Refusal) -> Answer {
    let of_delete = matches!(under_way.request, Request::Delete { .. });
    match refusal {
        Refusal::Denied if of_delete => Answer::Forbidden,
        Refusal::Missing if of_delete => Answer::Deletion(Reply::Missing),
        Refusal::Conflict if of_delete => Answer::Deletion(Reply::Conflict),
        Refusal::Throttled if of_delete => {
            Answer::Deletion(Reply::Throttled(Duration::from_secs(7)))
        }
        _ => Answer::Failed,
    }
}
