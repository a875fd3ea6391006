//! The end of a run.

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
        if self.plot.refuses {
            self.hold();
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
    fn hold(&mut self) {
        self.is_refusing = true;
        self.say("writes of the record are refused".into());
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
        self.is_refusing = false;
        self.settle_down();
        self.rules.told(self.record.as_ref().map(|(_, status)| status), self.seed);
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
