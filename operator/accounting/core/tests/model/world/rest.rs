//! The end of a run.

use trainjob_accounting_core::answer::Failure;

use super::World;

/// As `holdLimit` is by default, and 15 seconds (AH4).
const HELD_AT_MOST: u64 = 315;
/// After so many rounds everything has come to rest.
const ROUNDS: usize = 40;

impl World {
    /// Everything ends. One process has all the time it needs, and is killed whenever it has come to rest.
    pub(super) fn come_to_rest(&mut self) {
        self.say("everything comes to rest".into());
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
        self.rules.held(&self.pods);
        self.crash(0);
        self.settle_down();
        if let Some(failure) = self.plot.refuses {
            self.hold(failure);
        }
        for pod in 0..self.pods.len() {
            self.delete(pod);
            self.end(pod);
        }
        self.settle_down();
        self.finish();
        self.settle_down();
        self.crash(0);
        self.settle_down();
        let record = self.record.as_ref().map(|(_, status)| status);
        self.rules.at_rest(record, &self.pods, self.plot);
    }

    /// The record cannot be written, and everybody waits for the Pods (AH4).
    fn hold(&mut self, failure: Failure) {
        self.refusal = Some(failure);
        self.say(format!("writes of the record are refused: {failure:?}"));
        for pod in 0..self.pods.len() {
            if self.random.percent(60) {
                self.delete(pod);
                self.end(pod);
            }
        }
        let begun = self.seconds;
        while self.seconds < begun + HELD_AT_MOST {
            self.seconds += 3;
            self.round(0);
        }
        self.rules.held(&self.pods);
        self.refusal = None;
        self.lossy_round();
        self.settle_down();
        self.rules.told(self.record.as_ref().map(|(_, status)| status), self.seed);
    }

    /// Everything that is sent is carried out, and half of the replies are lost.
    fn lossy_round(&mut self) {
        self.is_lossy = true;
        for _ in 0..3 {
            self.seconds += 31;
            self.send(0);
            while !self.requests.is_empty() {
                self.with_request(Self::carry_out);
            }
            while !self.replies.is_empty() {
                let is_lost = self.random.percent(50);
                self.with_reply(is_lost);
            }
        }
        self.is_lossy = false;
    }

    /// Until nothing is sent any more.
    fn settle_down(&mut self) {
        let mut quiet = 0;
        for _ in 0..ROUNDS {
            self.seconds += 31;
            quiet = if self.round(0) { 0 } else { quiet + 1 };
            if quiet == 3 {
                return;
            }
        }
        self.rules.never_rests();
    }

    /// One process gets all news and answers. Whether anything was sent.
    pub(super) fn round(&mut self, process: usize) -> bool {
        for pod in 0..self.pods.len() {
            while self.watch(process, pod) {}
        }
        self.send(process);
        let is_busy = !self.requests.is_empty();
        while !self.requests.is_empty() {
            self.with_request(Self::carry_out);
        }
        while !self.replies.is_empty() {
            self.with_reply(false);
        }
        is_busy
    }
}
