//! Pods that lose our finalizer: those that are counted, and those that are let go (AH2).

use std::time::Duration;

use super::{
    Keeper,
    call::{Answer, Call},
};
use crate::{
    answer::{Failure, ForPod, for_pod, says_silence},
    clock::Now,
    plan::Evidence,
    pod::Pod,
    tracked::Presence,
};

impl Keeper {
    pub(super) fn release(&mut self, uid: String, is_counted: bool) -> Option<Call> {
        let tracked = self.pods.get_mut(&uid)?;
        tracked.presence = Presence::Releasing;
        if !is_counted {
            self.let_go.sent(&uid);
        }
        Some(Call::Release { uid, name: tracked.pod.name.to_string(), is_counted })
    }

    pub(super) fn release_answered(
        &mut self,
        uid: &str,
        is_counted: bool,
        answer: &Answer,
        now: Now,
    ) {
        let went_by_itself = !is_counted && self.went_by_itself(uid, answer);
        let unseen = self.let_go.answered(uid, went_by_itself);
        if let Answer::Failed { failure: Failure::Silent, .. } = answer {
            self.record.valve = self.record.valve.silent(now.clock);
        }
        match *answer {
            Answer::Released { version } => self.pods.released(uid, version),
            Answer::Failed { failure, retry_after } => match for_pod(failure) {
                ForPod::Absent if !self.pods.has_left(uid) => {
                    // The watch shows that it left. What it does not show a list does.
                    let tracked = self.pods.get(uid);
                    if is_counted && tracked.is_some_and(|it| it.backoff.has_failed()) {
                        self.recheck();
                    }
                    return self.release_failed(uid, retry_after, now);
                }
                // Who else has counted it shows when the record is read.
                ForPod::Released | ForPod::Absent if went_by_itself => {
                    self.went_unseen(unseen);
                    return self.pods.went(uid, now);
                }
                ForPod::Released | ForPod::Absent => self.pods.absent(uid),
                // It is not shown any more, or as released, so this was carried out, or one before.
                ForPod::Again | ForPod::Refused
                    if !is_counted
                        && self.pods.get(uid).is_none()
                        && (says_silence(failure) || self.let_go.may_have(uid)) => {}
                ForPod::Again | ForPod::Refused => {
                    if !is_counted && says_silence(failure) {
                        self.let_go.unsure_of(uid);
                        self.record.valve = self.record.valve.silent(now.clock);
                    }
                    return self.release_failed(uid, retry_after, now);
                }
            },
            Answer::Record(..) | Answer::Pods { .. } | Answer::Job | Answer::Stored { .. } => {
                return;
            }
        }
        if !is_counted {
            self.was_let_go(uid);
        }
    }

    /// Whether a Pod that was to be let go had gone, and not because of that.
    fn went_by_itself(&self, uid: &str, answer: &Answer) -> bool {
        let Answer::Failed { failure, .. } = answer else { return false };
        let has_gone = match for_pod(*failure) {
            ForPod::Released => true,
            ForPod::Absent => self.pods.has_left(uid),
            ForPod::Again | ForPod::Refused => false,
        };
        has_gone && !self.let_go.may_have(uid)
    }

    /// A list did not show so many Pods, and what was to let them go did not (AG11).
    const fn went_unseen(&mut self, pods: u64) {
        if let Evidence::Proven { unwatched, .. } = &mut self.record.evidence {
            *unwatched = unwatched.saturating_add(pods);
        }
    }

    /// A Pod is shown, by which an earlier request to let it go may turn out to have been carried out.
    pub(super) fn may_show_let_go(&mut self, pod: &Pod) {
        if self.let_go.is_shown_by(pod) {
            self.was_let_go(&pod.uid);
        }
    }

    /// Whether a Pod was released that this process does not let go. What it let go itself is told of as that.
    pub(super) fn has_released_before(&self, pod: &Pod) -> bool {
        pod.accounted && !self.let_go.has(&pod.uid)
    }

    fn was_let_go(&mut self, uid: &str) {
        self.record.valve = self.record.valve.let_go();
        self.let_go.push(uid.to_owned());
        // A store that was under way may have counted it.
        if let Some(status) = &self.record.status {
            self.let_go.counted(&status.settling);
        }
    }

    fn release_failed(&mut self, uid: &str, at_least: Duration, now: Now) {
        if let Some(tracked) = self.pods.get_mut(uid) {
            tracked.release_failed(now.clock, at_least);
        }
    }
}
