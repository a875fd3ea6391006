//! The network, which takes its time.

use trainjob_accounting_core::{
    answer::Failure,
    keeper::{Answer, Call},
};

use super::{
    plot::REFUSALS,
    request::{Sender, Sent, failed, word},
    world::{Reply, World},
};

impl World {
    /// A process sends what is due.
    pub(super) fn send(&mut self, process: usize) {
        let now = self.now(process);
        let Some(it) = self.processes.get_mut(process) else { return };
        for call in it.next(now) {
            self.request(process, call);
        }
    }

    fn request(&mut self, process: usize, call: Call) {
        self.say(|| format!("{process} sends {}", word(&call)));
        self.report.requests += 1;
        let planned_at = self.now(process).server.0;
        let Some(sender) = self.processes.get_mut(process) else { return };
        let (epoch, knows_job) = (sender.epoch, sender.knows_job());
        if let Call::Release { uid, is_counted: false, .. } = &call {
            let limit = i64::try_from(self.plot.hold_limit).unwrap_or(i64::MAX);
            let limit = if sender.is_leaking { limit.min(10) } else { limit };
            sender.is_leaking = true;
            let may_go_at = sender.good_at.max(self.rules.ended_at(uid)) + limit;
            let may = self.is_ending || self.seconds >= may_go_at;
            self.rules.lets_go((process, epoch), uid, may, (self.seconds, may_go_at));
        }
        let by = Sender { process, epoch, planned_at, knows_job };
        self.requests.push(Sent { by, call, given_up: false });
    }

    fn take_request(&mut self) -> Option<Sent> {
        let request = self.random.below(self.requests.len());
        (request < self.requests.len()).then(|| self.requests.swap_remove(request))
    }

    /// One of the requests arrives.
    pub(super) fn arrive(&mut self) {
        let Some(sent) = self.take_request() else { return };
        self.say(|| format!("{} of {} is carried out", word(&sent.call), sent.by.process));
        if sent.given_up {
            self.report.late += 1;
        }
        let answer = match self.silence() {
            Some(failure) => failed(failure),
            None => self.carry_out(&sent),
        };
        self.reply(sent, answer);
    }

    fn silence(&self) -> Option<Failure> {
        self.is_silent.then_some(Failure::Silent)
    }

    fn reply(&mut self, sent: Sent, answer: Answer) {
        if let Answer::Failed { .. } = answer {
            self.report.refused += 1;
        }
        if !sent.given_up {
            let job = self.job_version();
            self.replies.push(Reply { to: sent, answer, job });
        }
    }

    /// One of the requests is refused, whatever it asks for.
    pub(super) fn refuse(&mut self) {
        let Some(sent) = self.take_request() else { return };
        let failure = match &sent.call {
            Call::Create { .. } | Call::Store(_) => self.random.pick(&REFUSALS),
            Call::Get { .. } => self.random.pick(&[
                Failure::Unavailable,
                Failure::NotFound,
                Failure::NotServed,
                Failure::Forbidden,
            ]),
            Call::List { .. } | Call::ReadJob => {
                self.random.pick(&[Failure::Unavailable, Failure::Forbidden])
            }
            Call::Release { .. } => self.random.pick(&[
                Failure::Unavailable,
                Failure::Forbidden,
                Failure::Invalid,
                Failure::Conflict,
            ]),
        };
        let failure = match &sent.call {
            // An API server that has just started knows no custom resource.
            Call::Store(_) if self.random.percent(15) => Failure::NotFound,
            _ => failure.unwrap_or(Failure::Unavailable),
        };
        self.say(|| format!("{} is refused: {failure:?}", word(&sent.call)));
        self.reply(sent, failed(failure));
    }

    /// One of the requests never arrives.
    pub(super) fn lose_request(&mut self) {
        let Some(sent) = self.take_request() else { return };
        if !sent.given_up {
            self.report.lost += 1;
            self.say(|| format!("{} is lost", word(&sent.call)));
            self.answer(&sent, unanswered(), 0);
        }
    }

    /// One of the requests arrives after nobody waits for it any more.
    pub(super) fn give_up(&mut self) {
        let Some(sent) = self.take_request() else { return };
        if !sent.given_up {
            self.say(|| format!("{} is given up", word(&sent.call)));
            self.answer(&sent, unanswered(), 0);
        }
        self.requests.push(Sent { given_up: true, ..sent });
    }

    /// One of the answers arrives, or does not.
    pub(super) fn deliver(&mut self, is_lost: bool) {
        let reply = self.random.below(self.replies.len());
        if reply >= self.replies.len() {
            return;
        }
        let Reply { to, answer, job } = self.replies.swap_remove(reply);
        if is_lost {
            self.report.lost += 1;
            self.say(|| format!("the answer to {} is lost", word(&to.call)));
            return self.answer(&to, unanswered(), 0);
        }
        self.answer(&to, answer, job);
    }

    fn answer(&mut self, sent: &Sent, answer: Answer, job: usize) {
        let now = self.now(sent.by.process);
        let Some(process) = self.processes.get_mut(sent.by.process) else { return };
        if process.epoch != sent.by.epoch {
            return;
        }
        let answer = match (answer, self.jobs.get(job)) {
            (Answer::Job, Some(read)) => process.read_job(job, read),
            (answer, _) => answer,
        };
        if let Some(again) = process.answered(&sent.call, answer, now) {
            self.request(sent.by.process, again);
        }
    }

    /// The next event of a Pod reaches a process. Whether there was one.
    pub(super) fn watch(&mut self, process: usize, pod: usize) -> bool {
        let now = self.now(process);
        let (Some(history), Some(process)) = (self.pods.get(pod), self.processes.get_mut(process))
        else {
            return false;
        };
        process.watch(pod, history, now)
    }

    /// All other news reach a process.
    pub(super) fn watch_others(&mut self, process: usize) {
        if let Some(process) = self.processes.get_mut(process) {
            while process.watch_job(&self.jobs) || process.watch_record(&self.gone_records) {}
        }
    }
}

const fn unanswered() -> Answer {
    failed(Failure::Unanswered)
}
