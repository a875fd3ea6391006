//! The network, which takes its time, and the API server.

use std::time::Duration;

use trainjob_accounting_core::{
    answer::Failure,
    keeper::{Answer, Call, Fence, Store},
};
use trainjob_api::{lifecycle::v1alpha1::record::TrainJobRecordStatus, time::Timestamp};

use super::World;
use crate::{defect::Defect, rules::Stored};

/// A request under way.
pub(super) struct Sent {
    from: usize,
    epoch: u64,
    call: Call,
    planned_at: Timestamp,
    /// Nobody waits for its answer any more.
    given_up: bool,
}

impl World {
    pub(super) fn send(&mut self, process: usize) {
        let now = self.now(process);
        for call in self.processes[process].next(&self.job, now) {
            self.request(process, call);
        }
    }

    fn request(&mut self, from: usize, call: Call) {
        self.say(format!("{from} sends {}", word(&call)));
        let (epoch, planned_at) = (self.processes[from].epoch, self.now(from).server);
        self.requests.push(Sent { from, epoch, call, planned_at, given_up: false });
    }

    pub(super) fn with_request(&mut self, what: impl FnOnce(&mut Self, Sent)) {
        if !self.requests.is_empty() {
            let request = self.random.below(self.requests.len());
            let sent = self.requests.swap_remove(request);
            what(self, sent);
        }
    }

    /// It never arrives.
    pub(super) fn lose_request(&mut self) {
        self.with_request(|world, sent| {
            if !sent.given_up {
                world.accidents[3] += 1;
                world.say(format!("{} is lost", word(&sent.call)));
                world.answer(&sent, unanswered());
            }
        });
    }

    /// It arrives after nobody waits for it any more.
    pub(super) fn give_up(&mut self) {
        self.with_request(|world, sent| {
            if !sent.given_up {
                world.accidents[5] += 1;
                world.say(format!("{} is given up", word(&sent.call)));
                world.answer(&sent, unanswered());
            }
            world.requests.push(Sent { given_up: true, ..sent });
        });
    }

    pub(super) fn with_reply(&mut self, is_lost: bool) {
        if self.replies.is_empty() {
            return;
        }
        let reply = self.random.below(self.replies.len());
        let (sent, answer) = self.replies.swap_remove(reply);
        if is_lost {
            self.accidents[4] += 1;
            self.say(format!("the reply to {} is lost", word(&sent.call)));
        }
        self.answer(&sent, if is_lost { unanswered() } else { answer });
    }

    fn answer(&mut self, sent: &Sent, answer: Answer) {
        let now = self.now(sent.from);
        let process = &mut self.processes[sent.from];
        if process.epoch == sent.epoch
            && let Some(again) = process.answered(&sent.call, answer, &self.pods, now)
        {
            self.request(sent.from, again);
        }
    }

    pub(super) fn carry_out(&mut self, sent: Sent) {
        self.say(format!("{} of {} is carried out", word(&sent.call), sent.from));
        let answer = match &sent.call {
            Call::Create { .. } => self.create_record(),
            Call::Get { .. } => self.read_record(),
            Call::List { .. } => self.list(),
            Call::ReadJob => Answer::Job,
            Call::Store(store) => self.store(store, sent.planned_at),
            Call::Release { uid, is_counted, .. } => self.release(uid, *is_counted),
        };
        if !sent.given_up {
            self.replies.push((sent, answer));
        }
    }

    fn create_record(&mut self) -> Answer {
        if self.record.is_some() {
            return failed(Failure::AlreadyExists { same: true });
        }
        if let Some(failure) = self.refusal {
            return failed(failure);
        }
        self.record = Some((self.next_version(), TrainJobRecordStatus::default()));
        self.read_record()
    }

    fn read_record(&self) -> Answer {
        match &self.record {
            Some((version, status)) => Answer::Record(fence(*version), Box::new(status.clone())),
            None => failed(Failure::NotFound),
        }
    }

    fn list(&self) -> Answer {
        let there = self.pods.iter().filter_map(|pod| {
            let (version, pod) = pod.0.last()?;
            Some((*version, pod.clone()?))
        });
        Answer::Pods { version: self.version, pods: there.collect() }
    }

    fn store(&mut self, store: &Store, planned_at: Timestamp) -> Answer {
        if let Some(failure) = self.refusal {
            self.accidents[2] += 1;
            return failed(failure);
        }
        let Some((current, before)) = &self.record else { return failed(Failure::NotFound) };
        if fence(*current) != store.fence {
            self.accidents[2] += 1;
            return failed(Failure::Conflict);
        }
        self.accidents[1] += 1;
        let stored = Stored { before, after: &store.status, planned_at, pods: &self.pods };
        self.rules.stored(&stored);
        let version = self.next_version();
        self.record = Some((version, store.status.clone()));
        Answer::Stored { version: version.to_string() }
    }

    fn release(&mut self, uid: &str, is_counted: bool) -> Answer {
        let found = self.pods.iter().position(|it| it.newest().is_some_and(|pod| pod.uid == uid));
        let Some(pod) = found else { return failed(Failure::NotFound) };
        self.rules.released(uid, is_counted, self.is_lossy || self.refusal.is_some());
        let annotates = self.defect != Some(Defect::NoAnnotation);
        self.change(pod, "is released", |pod| {
            pod.finalizer = false;
            pod.accounted |= annotates;
        });
        Answer::Released { version: self.version }
    }

    /// The next event of a Pod reaches a process.
    pub(super) fn watch(&mut self, process: usize, pod: usize) -> bool {
        let now = self.now(process);
        let Some(history) = self.pods.get(pod) else { return false };
        self.processes[process].watch(pod, history, now)
    }
}

fn fence(version: u64) -> Fence {
    Fence { name: "llm-j".into(), uid: "r".into(), version: version.to_string() }
}

const fn failed(failure: Failure) -> Answer {
    Answer::Failed { failure, retry_after: Duration::ZERO }
}

const fn unanswered() -> Answer {
    failed(Failure::Unanswered)
}

fn word(call: &Call) -> String {
    match call {
        Call::Create { .. } => "create".into(),
        Call::Get { .. } => "get".into(),
        Call::List { .. } => "list".into(),
        Call::ReadJob => "read job".into(),
        Call::Store(store) => {
            format!("store {} at {}", store.status.settling.join(" "), store.fence.version)
        }
        Call::Release { uid, is_counted, .. } => {
            format!("{} {uid}", if *is_counted { "release" } else { "let go" })
        }
    }
}
