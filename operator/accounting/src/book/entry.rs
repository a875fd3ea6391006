//! A record with something left to do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use trainjob_accounting_core::{
    answer::{Failure, ForPod, for_pod},
    clock::Now,
    job::Job,
    keeper::{Answer, Call, Keeper},
    pod::Pod,
    settings::Settings,
    tracked::{Presence, Tracked},
};
use trainjob_api::lifecycle::v1alpha1::record::{PodCounts, TrainJobRecordStatus};

/// A TrainJob with more Pods has a list of its own.
pub(super) const FEW: usize = 100;

/// A record with something left to do.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) keeper: Keeper,
    /// The request about the record that is to be sent.
    pub(super) call: Option<Call>,
    /// The releases that are to be sent, by UID of the Pod.
    pub(super) releases: BTreeMap<Arc<str>, Call>,
    /// Pods whose release was refused.
    pub(super) refused: BTreeSet<String>,
    /// Whether somebody waits for a Pod of it to go.
    pub(super) is_awaited: bool,
    /// Whether the watch shows a record that is not final.
    pub(super) is_open: bool,
    /// Whether its Pods are asked for together with those of others.
    pub(super) is_asked: bool,
    /// Until when it is not looked at again.
    pub(super) rests_until: Duration,
}

/// What to do about a record.
#[derive(Debug)]
pub enum Step {
    /// There is nothing left to do.
    Done,
    /// Send this; then ask again.
    Send(Call),
    /// Its Pods are listed with those of others; then ask again.
    Share,
    /// Ask again after this time.
    Wait(Option<Duration>),
}

/// A status that was stored.
#[derive(Debug)]
pub struct Change {
    /// The status before.
    pub before: TrainJobRecordStatus,
    /// The status that was stored.
    pub after: TrainJobRecordStatus,
}

/// What follows from an answer.
#[derive(Debug, Default)]
pub struct Answered {
    /// A status was stored.
    pub change: Option<Change>,
    /// Pods that will not be counted, because there is no namespace to count them in.
    pub forgotten: Vec<Tracked>,
}

impl Entry {
    /// The watch shows a Pod.
    pub(super) fn saw(&mut self, version: u64, pod: Pod, now: Now) {
        self.is_awaited |= pod.deletion.is_some() && pod.finalizer;
        self.keeper.saw(version, pod, now);
    }

    /// What to do, and the Pods that are to be released now.
    pub(super) fn step(
        &mut self,
        job: &Job,
        settings: &Settings,
        now: Now,
    ) -> (Step, Vec<Arc<str>>) {
        if let Some(call) = &self.call {
            return (self.step_for(call), Vec::new());
        }
        if self.keeper.is_done() && self.releases.is_empty() {
            return (Step::Done, Vec::new());
        }
        self.is_awaited = self.keeper.pods().any(is_held);
        let calls = self.keeper.next(job, settings, now);
        let mut releases = Vec::new();
        for call in calls.now {
            match &call {
                Call::Release { uid, .. } => {
                    let uid: Arc<str> = uid.as_str().into();
                    releases.push(Arc::clone(&uid));
                    self.releases.insert(uid, call);
                }
                Call::Create { .. }
                | Call::Get { .. }
                | Call::List { .. }
                | Call::ReadJob
                | Call::Store(_) => self.call = Some(call),
            }
        }
        let step = self.call.as_ref().map_or(Step::Wait(calls.after), |call| self.step_for(call));
        (step, releases)
    }

    /// An API server looks at all Pods of a namespace for each list by label, so few Pods are listed with those of others.
    /// For many, nobody else is to wait.
    fn step_for(&self, call: &Call) -> Step {
        match call {
            Call::List { .. } if self.is_asked || self.has_few_pods() => Step::Share,
            call => Step::Send(call.clone()),
        }
    }

    fn has_few_pods(&self) -> bool {
        let counted = self.keeper.status().map_or(0, |status| {
            let PodCounts { active: _, succeeded, failed, deleted } = status.totals.pods;
            succeeded + failed + deleted
        });
        // More than that need not be counted.
        let open = self.keeper.pods().take(FEW + 1).count();
        open as u64 + counted <= FEW as u64
    }

    /// Takes the answer to a call.
    pub(super) fn answered(&mut self, call: &Call, answer: Answer, now: Now) -> Answered {
        let mut answered = Answered::default();
        match call {
            Call::Release { uid, .. } => {
                self.releases.remove(uid.as_str());
                if is_refused(&answer) {
                    self.refused.insert(uid.clone());
                } else {
                    self.refused.remove(uid);
                }
            }
            Call::Create { .. } => {
                self.call = None;
                if let Answer::Failed { failure: Failure::NoNamespace, .. } = answer {
                    let uncounted = |tracked: &&Tracked| tracked.presence != Presence::Released;
                    answered.forgotten = self.keeper.pods().filter(uncounted).cloned().collect();
                }
            }
            Call::Store(store) => {
                self.call = None;
                if let Answer::Stored { .. } = answer {
                    // There is none if somebody has deleted the record since. How it was before is not known any more.
                    answered.change = self.keeper.status().map(|before| Change {
                        before: before.clone(),
                        after: store.status.clone(),
                    });
                }
            }
            Call::Get { .. } | Call::List { .. } | Call::ReadJob => self.call = None,
        }
        self.keeper.answered(call, answer, now);
        answered
    }
}

fn is_refused(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed { failure, .. } if for_pod(*failure) == ForPod::Refused)
}

/// Whether somebody waits for it, and our finalizer is on it.
pub(super) fn is_held(tracked: &Tracked) -> bool {
    match tracked.presence {
        Presence::Here | Presence::Releasing | Presence::Stripped => {
            tracked.pod.deletion.is_some() && tracked.pod.finalizer
        }
        Presence::Gone | Presence::Released => false,
    }
}
