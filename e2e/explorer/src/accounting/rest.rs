//! The end of a schedule: everything comes to rest, with a crash wherever that could matter.

use trainjob_accounting_core::{answer::Failure, job::FinishedHow};

use super::{plot::Turn, world::World};

/// How much longer than `holdLimit` a Pod is held at most, in seconds (AH4).
const HELD_LONGER: i64 = 15;
/// After so many rounds everything has come to rest.
const ROUNDS: usize = 300;
/// How often a process looks within a second.
const LOOKS: usize = 8;
/// What has not sent anything for so long is at rest. Failed requests are repeated sooner.
const QUIET: i64 = 93;

impl World {
    /// Everything ends. One process has all the time it needs, and is killed whenever it has come to rest.
    pub(super) fn come_to_rest(&mut self) {
        for stage in STAGES {
            if self.rules.violation.is_some() {
                return;
            }
            stage(self);
        }
    }

    fn end_some(&mut self) {
        self.say(|| "everything comes to rest".into());
        (self.refusal, self.is_silent) = (None, false);
        for pod in 0..self.pods.len() {
            if self.random.percent(70) {
                self.end(pod);
            }
            if self.random.percent(40) {
                self.delete(pod);
            }
        }
        self.settle_down();
        // Before a crash makes it all anew: what failed until now was repeated.
        self.rules.held(&self.pods, self.seconds);
        self.crash(0);
        self.settle_down();
    }

    fn turn(&mut self) {
        match self.plot.turn {
            Turn::None => {}
            Turn::Refuses(failure) => self.refuse_for_long(failure),
            Turn::Silence => self.be_silent(),
            Turn::RecordDeleted => self.make_record_anew(),
            Turn::Terminates => self.terminate(),
        }
    }

    fn end_all(&mut self) {
        self.search_unlabelled();
        for pod in 0..self.pods.len() {
            self.delete(pod);
            self.end(pod);
        }
        self.settle_down();
        if self.plot.lives && self.random.percent(30) {
            self.go();
        }
        self.finish(FinishedHow::Complete);
        self.settle_down();
        self.crash(0);
        self.settle_down();
        if self.is_ending {
            return self.rules.none_left(&self.pods);
        }
        let record = self.record.as_ref().map(|record| &record.status);
        self.rules.at_rest(record, &self.pods, &self.jobs, self.plot);
    }

    /// Some Pods end, and everybody waits for them to go.
    fn wait_for_some(&mut self) {
        for pod in 0..self.pods.len() {
            if self.random.percent(60) {
                self.delete(pod);
                self.end(pod);
            }
        }
    }

    /// The record cannot be written (AH4).
    fn refuse_for_long(&mut self, failure: Failure) {
        let before = self.told();
        self.refusal = Some(failure);
        self.say(|| format!("writes of the record are refused: {failure:?}"));
        self.wait_for_some();
        let until = self.seconds + self.hold_limit() + HELD_LONGER;
        while self.seconds < until {
            self.seconds += 3;
            self.round(0);
        }
        self.rules.held(&self.pods, self.seconds);
        self.refusal = None;
        self.lossy_rounds();
        self.settle_down();
        self.rules.told(before, self.told());
    }

    /// Nothing is answered for twice as long as a Pod is held at most. At first only requests tell that (AH3).
    fn be_silent(&mut self) {
        let before = self.told();
        self.wait_for_some();
        self.watch_all(0);
        let until = self.seconds + 2 * self.hold_limit();
        self.refusal = Some(Failure::Unanswered);
        self.send(0);
        self.exchange();
        self.refusal = None;
        self.is_silent = true;
        self.say(|| "the API server is silent".into());
        while self.seconds < until {
            self.seconds += 3;
            self.send(0);
            self.exchange();
        }
        self.is_silent = false;
        self.settle_down();
        let after = self.told();
        self.rules.none_let_go(before, after);
    }

    /// Somebody deletes the record while something is left to do.
    fn make_record_anew(&mut self) {
        self.create();
        self.settle_down();
        let is_final = self.record.as_ref().is_some_and(|record| {
            record.status.conditions.iter().any(|it| it.type_ == "Final" && it.status == "True")
        });
        if self.record.is_none() || is_final {
            return;
        }
        self.delete_record();
        if self.random.percent(50) {
            self.wait_for_some();
        }
        self.settle_down();
        self.rules.made_anew(self.record.as_ref().map(|record| &record.status));
    }

    /// The namespace is deleted, with everything in it.
    fn terminate(&mut self) {
        self.is_ending = true;
        self.say(|| "the namespace terminates".into());
        if self.random.percent(50) {
            self.delete_record();
        }
        self.go();
    }

    fn hold_limit(&self) -> i64 {
        i64::try_from(self.plot.hold_limit).unwrap_or_default()
    }

    /// How many Pods were let go, and how many of them are told of.
    fn told(&self) -> (u64, u64) {
        let (_, _, let_go) = self.rules.numbers();
        let lost = self.record.as_ref().map(|record| &record.status.lost);
        let told = lost.and_then(|lost| lost.get("RecordUnwritable")).copied().unwrap_or_default();
        (let_go.try_into().unwrap_or_default(), told)
    }

    /// Everything that is sent is carried out, and half of the answers are lost.
    fn lossy_rounds(&mut self) {
        for _ in 0..3 {
            self.seconds += 31;
            self.send(0);
            while !self.requests.is_empty() {
                self.arrive();
            }
            while !self.replies.is_empty() {
                let is_lost = self.random.percent(50);
                self.deliver(is_lost);
            }
        }
    }

    /// Until nothing is sent any more.
    fn settle_down(&mut self) {
        let mut quiet = 0;
        for _ in 0..ROUNDS {
            // Whoever has an answer looks at once what follows.
            let mut looks = 0;
            while looks < LOOKS && self.round(0) {
                (quiet, looks) = (0, looks + 1);
            }
            let after = self.processes.first().and_then(|process| process.after);
            let wait = after.map_or(31, |after| after.as_secs().try_into().unwrap_or(31));
            let wait = wait.clamp(1, 31);
            self.seconds += wait;
            quiet = if self.round(0) { 0 } else { quiet + wait };
            if quiet >= QUIET {
                return;
            }
        }
        self.rules.never_rests();
    }

    fn watch_all(&mut self, process: usize) {
        for pod in 0..self.pods.len() {
            while self.watch(process, pod) {}
        }
        self.watch_others(process);
    }

    /// One process gets all news and answers. Whether anything was sent.
    pub(super) fn round(&mut self, process: usize) -> bool {
        self.watch_all(process);
        self.send(process);
        let is_busy = !self.requests.is_empty();
        self.exchange();
        is_busy
    }

    /// Everything arrives.
    fn exchange(&mut self) {
        while !self.requests.is_empty() {
            self.arrive();
        }
        while !self.replies.is_empty() {
            self.deliver(false);
        }
    }
}

const STAGES: [fn(&mut World); 3] = [World::end_some, World::turn, World::end_all];
