//! The end of a schedule: faults stop, everything arrives, time runs on until nothing happens any more.
//! Then what had to happen must have happened.

use invariants::Millis;
use trainjob_core::{
    build::{Runtime, build, fixed_difference, runtime_key, snapshot, update_suspended},
    facts::ObjectKey,
    observed::Settings,
    take_over::Comparison,
};

use super::world::World;
use crate::{
    Rule, Violation,
    objects::{StoredJob, StoredJobSet, at, conditions, end, is_ours, runtime},
    operator::{Fate, Kind, Operator},
    random::Random,
    server::{
        Slot,
        judge::{deadline_due, stranger, ttl_due},
    },
};

/// Rounds of everybody's work after which the world must be quiet.
const ROUNDS: usize = 400;
/// After so long without a change no more retries are waited for: no wait is longer.
const LONGEST_WAIT: Millis = 130_000;
/// Steps of an operator without time passing, after which it is taken to go on for ever.
const TURNS: usize = 600;

impl World {
    /// Lets everything come to its end, and judges it.
    pub(super) fn end(&mut self, random: &mut Random) {
        while !self.strays.is_empty() {
            let number = random.below(self.strays.len());
            self.arrive(number);
        }
        if self.operators.len() > 1 {
            let number = random.below(2);
            self.stop(number, false);
        }
        if random.percent(50) {
            for name in 0..self.server.slots.len() {
                self.server.release_kept(name);
            }
        }
        if self.late_snapshot {
            // A job that waits for its runtime does not look for a snapshot before there is one.
            self.server.set_runtime(runtime(0));
        }
        self.note(|| "faults stop".into());
        self.know_time();
        self.come_to_rest();
        let before = self.server.revision;
        if self.server.violation.is_none() {
            self.judge();
            self.crash(0, false);
            self.work();
            let same = self.server.revision == before || self.has_foreign_snapshot();
            self.server.expect(Rule::Convergence, same, || "a restart changes things".into());
        }
        if self.server.violation.is_none() {
            self.resume_all();
        }
    }

    /// Whoever took over has compared nothing that is suspended. What runs in the end is judged when it is resumed.
    fn resume_all(&mut self) {
        for name in 0..self.server.slots.len() {
            self.server.edit_job(name, |job| job.spec.suspend = Some(false));
        }
        self.note(|| "every job is resumed".into());
        self.come_to_rest();
        if self.server.violation.is_none() {
            self.judge();
        }
    }

    /// Whether the operator that works in the end compares a suspended JobSet before it is resumed.
    fn is_compared(&self, key: &ObjectKey) -> bool {
        let view = self.operators.first().and_then(|operator| operator.view(key));
        view.is_none_or(|view| view.comparison == Comparison::Due)
    }

    /// Lets the first operator do what there is to do, before anything goes wrong.
    pub(super) fn settle_in(&mut self) {
        self.work();
        for name in 0..self.server.slots.len() {
            self.server.start_pods(name);
        }
        self.note(|| "faults begin".into());
    }

    /// Nobody watches ConfigMaps: what a job waits for may be known only after a restart.
    fn has_foreign_snapshot(&self) -> bool {
        let snapshots = self.server.slots.iter().filter_map(|slot| slot.snapshot.as_ref());
        snapshots.into_iter().any(|snapshot| snapshot.metadata.owner_references.is_none())
    }

    fn come_to_rest(&mut self) {
        let mut changed = self.server.now;
        for _ in 0..ROUNDS {
            let before = self.server.revision;
            self.work();
            self.let_others_work();
            if self.server.violation.is_some() {
                return;
            }
            if self.server.revision != before {
                changed = self.server.now;
                continue;
            }
            if !self.sleep(self.server.now < changed + LONGEST_WAIT) {
                return;
            }
        }
        let what = "things keep happening".into();
        self.broke(Violation { rule: Rule::Convergence, what });
    }

    /// The operator does what it can without time passing.
    fn work(&mut self) {
        for _ in 0..TURNS {
            let mut delivered = false;
            for kind in Kind::ALL {
                delivered |= self.deliver(0, kind);
            }
            match self.turns(0).first() {
                Some(turn) => self.take(0, *turn, Fate::Arrives),
                None if !delivered => return,
                None => {}
            }
            if self.server.violation.is_some() {
                return;
            }
        }
        let what = "an operator does not come to rest".into();
        self.broke(Violation { rule: Rule::BoundedPressure, what });
    }

    fn let_others_work(&mut self) {
        for name in 0..self.server.slots.len() {
            self.server.end_pods(name);
            self.server.collect(name, true);
        }
    }

    /// Sleeps until the next timer. False when there is none worth waiting for.
    fn sleep(&mut self, retries_count: bool) -> bool {
        let (requeue_at, retry) =
            self.operators.first().map_or((None, None), Operator::next_timers);
        let retry = retry.filter(|_| retries_count);
        let Some(at) = requeue_at.into_iter().chain(retry).min() else { return false };
        self.wait((at - self.server.now).max(0));
        true
    }

    fn judge(&mut self) {
        let now = self.operators.first();
        let now = now.and_then(|operator| operator.clock(&self.server).reached());
        let mut found = None;
        for slot in &self.server.slots {
            let Some(job) = slot.job.as_ref().filter(|job| is_ours(&job.manifest)) else {
                continue;
            };
            let judge = Judge {
                slot,
                job,
                compared: self.is_compared(&job.facts.key),
                settings: self.server.settings,
                alone: self.server.alone,
                runtime: self.server.runtime.as_deref(),
                now: now.unwrap_or_default().0,
            };
            found = found.or_else(|| judge.finished().or_else(|| judge.unfinished()));
        }
        if let Some(violation) = found {
            self.broke(violation);
        }
    }
}

struct Judge<'a> {
    slot: &'a Slot,
    job: &'a StoredJob,
    settings: Settings,
    alone: bool,
    /// Whether its JobSet has to be as it says although it is suspended.
    compared: bool,
    runtime: Option<&'a Runtime>,
    now: i64,
}

impl Judge<'_> {
    fn own(&self) -> Option<&StoredJobSet> {
        self.slot.job_set_of(&self.job.facts.uid).map(AsRef::as_ref)
    }

    fn broke(&self, rule: Rule, what: &str) -> Violation<Rule> {
        Violation { rule, what: format!("{}: {what}", self.job.facts.uid) }
    }

    fn finished(&self) -> Option<Violation<Rule>> {
        let job = &self.job.manifest;
        let end = end(job)?;
        let by_deadline = end.reason == "DeadlineExceeded";
        let own = self.own();
        let going = own.is_some_and(|own| own.facts.terminating_since.is_some());
        let late =
            own.is_some_and(|own| own.facts.created_at > at(end) && own.facts.ended.is_none());
        let stranger = stranger(self.slot.job_set.as_deref(), &self.job.facts.uid);
        let held = own.is_some() || self.slot.pods.iter().any(|pod| Some(pod) != stranger.as_ref());
        if by_deadline && own.is_some() && !going {
            return Some(self.broke(Rule::DeadlineHappens, "its JobSet is still there"));
        }
        if late && !going {
            return Some(
                self.broke(Rule::NoResurrection, "a JobSet was made after its end and stays"),
            );
        }
        if let Some(due) = ttl_due(job, self.settings)
            && due <= self.now
            && !(by_deadline && held)
        {
            return Some(self.broke(Rule::TtlHappens, "its TTL is due"));
        }
        None
    }

    fn unfinished(&self) -> Option<Violation<Rule>> {
        let job = &self.job.manifest;
        if end(job).is_some() {
            return None;
        }
        let due = deadline_due(job, self.settings.deadline_clock);
        if due.is_some_and(|due| due <= self.now) {
            return Some(self.broke(Rule::DeadlineHappens, "its deadline is due"));
        }
        let suspend = job.spec.suspend == Some(true);
        let said = conditions(job).iter().find(|condition| condition.type_ == "Suspended");
        if suspend != said.is_some_and(|condition| condition.status == "True") {
            return Some(self.broke(Rule::Convergence, "its status says other than its spec"));
        }
        let counts = self.own().map(|own| &own.facts.jobs_status);
        if counts.is_some_and(|counts| *counts != self.job.facts.jobs_status) {
            return Some(self.broke(Rule::Convergence, "its counts are old"));
        }
        if self.own().is_some_and(|own| own.facts.ended.is_some()) {
            return Some(self.broke(Rule::Convergence, "the end of its JobSet was not noticed"));
        }
        if self.job.facts.terminating {
            return None;
        }
        let waits = conditions(job).iter().any(|condition| condition.type_ == "Waiting");
        match self.own() {
            Some(own) if own.facts.terminating_since.is_some() => None,
            Some(_) if waits => {
                Some(self.broke(Rule::Convergence, "it has a JobSet and says it waits"))
            }
            Some(own) => self.follows(own, suspend),
            None if waits == self.is_blocked() => None,
            None => Some(self.broke(Rule::Convergence, "it has no JobSet")),
        }
    }

    fn follows(&self, own: &StoredJobSet, suspend: bool) -> Option<Violation<Rule>> {
        if own.facts.suspended != suspend {
            return Some(
                self.broke(Rule::Convergence, "its JobSet does not follow its suspension"),
            );
        }
        let frozen = snapshot::read(&self.job.manifest, self.slot.snapshot.as_ref()?).ok()?;
        let wanted = build(&self.job.manifest, &frozen).ok()?.job_set;
        let to_be_remade = own.facts.never_ran && fixed_difference(&own.object, &wanted).is_some();
        let differs = self.alone
            && self.compared
            && suspend
            && (to_be_remade || update_suspended(&own.object, &wanted).is_some());
        differs.then(|| self.broke(Rule::Convergence, "its JobSet does not follow it"))
    }

    /// Whether an unfinished job has a reason to have no JobSet.
    fn is_blocked(&self) -> bool {
        let job = &self.job.manifest;
        let usable = |config_map| {
            snapshot::read(job, config_map).is_ok_and(|runtime| build(job, &runtime).is_ok())
        };
        let foreign = self.slot.job_set.is_some();
        let snapshot = self.slot.snapshot.as_ref();
        foreign
            || snapshot.is_some_and(|config_map| !usable(config_map))
            || (snapshot.is_none() && !self.runtime_is_usable())
            || runtime_key(job).is_err()
    }

    fn runtime_is_usable(&self) -> bool {
        self.runtime.is_some_and(|runtime| build(&self.job.manifest, runtime).is_ok())
    }
}
