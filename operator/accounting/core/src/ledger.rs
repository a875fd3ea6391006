//! How a record grows: shares are added, sums follow.
//!
//! No list and no sum depends on the order in which Pods are counted, so a run that was disturbed ends in the record of
//! one that was not (A11). Where there is less room than there are values, the least or the latest are kept, whichever
//! came first: the last six attempts, the sixteen first names, the ten earliest failures.

mod failures;
mod key;
mod sums;
mod totals;

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use trainjob_api::lifecycle::v1alpha1::{
    record::{
        ATTEMPTS, Attempt, AttemptCause, EarlierAttempts, JOB_SETS, NAMES, OTHER, PodSums,
        RecordedJobSet, RecordedReplicatedJob, Seconds, TrainJobRecordStatus,
    },
    record_words::{DeletedReason, Outcome, RecordReason},
};

use self::key::{Key, key_of};
pub use self::totals::hours;
use crate::{amounts::add, pod::Pod, settings::Settings, share::Share, verdict::Verdict};

/// A record that is written.
#[derive(Debug)]
pub struct Ledger<'a> {
    status: TrainJobRecordStatus,
    settings: &'a Settings,
}

impl<'a> Ledger<'a> {
    /// Goes on from what is stored.
    #[must_use]
    pub const fn new(stored: TrainJobRecordStatus, settings: &'a Settings) -> Self {
        Self { status: stored, settings }
    }

    /// Learns of Pods before any of them is counted: JobSets are numbered by their first Pods, however these are counted.
    pub fn meet<'p>(&mut self, pods: impl IntoIterator<Item = &'p Pod>) {
        let mut pods: Vec<_> = pods.into_iter().collect();
        pods.sort_by(|one, other| (one.created_at, &one.uid).cmp(&(other.created_at, &other.uid)));
        for pod in pods {
            self.attempt(&pod.template.job_set, pod.restart);
        }
    }

    /// Adds what a Pod adds. That it is added once is the caller's concern.
    pub fn count(&mut self, share: &Share) {
        let (start, end) = (Time::from(share.span.start()), Time::from(share.span.end()));
        sums::earlier(&mut self.status.started_at, Some(&start));
        sums::later(&mut self.status.ended_at, Some(&end));
        self.status.clamped = add(self.status.clamped, share.span.is_clamped().into());
        let key = self.attempt(&share.job_set, share.restart);
        let settings = self.settings;
        let (place, by_cause) = self.place(&share.replicated_job, key);
        let dropped = sums::count(place, share, settings);
        if let Some(by_cause) = by_cause {
            let cause = share.verdict.reason().filter(|_| share.verdict.is_wasted());
            let lost = sums::gpu_seconds(&share.seconds, settings);
            sums::add_to(by_cause, cause.unwrap_or(DeletedReason::Stopped.as_str()), lost);
        }
        if dropped {
            self.note(RecordReason::TooManyResources);
        }
        if share.observed {
            self.note(RecordReason::Observed);
        }
        match share.verdict {
            Verdict::Succeeded => {}
            Verdict::Failed(_) => {
                self.cause_by_failure(key, share);
                failures::count(&mut self.status, key, share, self.settings.failure_messages);
            }
            Verdict::Deleted(reason) => {
                if reason == DeletedReason::Unprotected {
                    self.note(RecordReason::Unprotected);
                }
                self.cause_by_stop(key, reason);
            }
        }
        self.make_room();
    }

    /// Says which Pods are open. They take part in nothing but `active`, and in which attempts and JobSets there are.
    pub fn set_open<'p>(&mut self, open: impl IntoIterator<Item = &'p Pod>) {
        for job in &mut self.status.replicated_jobs {
            let attempts = job.attempts.iter_mut().map(|attempt| &mut attempt.sums);
            let earlier = job.earlier.iter_mut().map(|earlier| &mut earlier.sums);
            attempts.chain(earlier).for_each(|sums| sums.pods.active = 0);
        }
        let mut open: Vec<_> = open.into_iter().collect();
        open.sort_by(|one, other| (one.created_at, &one.uid).cmp(&(other.created_at, &other.uid)));
        for pod in open {
            // AM0: its end may be missed.
            if !pod.finalizer {
                self.note(RecordReason::Observed);
            }
            let key = self.attempt(&pod.template.job_set, pod.restart);
            let (place, _) = self.place(&pod.template.replicated_job, key);
            place.pods.active = add(place.pods.active, 1);
        }
        self.make_room();
    }

    /// Notes why the record is not exact. It stays noted.
    pub fn note(&mut self, reason: RecordReason) {
        let word = reason.as_str();
        if !self.status.inexact.iter().any(|it| it == word) {
            self.status.inexact.push(word.into());
            self.status.inexact.sort_unstable();
        }
    }

    /// The record with all sums.
    #[must_use]
    pub fn finish(mut self, outcome: Outcome) -> TrainJobRecordStatus {
        outcome.as_str().clone_into(&mut self.status.outcome);
        let (totals, complete) = totals::of(&self.status, outcome, self.settings);
        self.status.totals = totals;
        if !complete {
            self.note(RecordReason::TooManyResources);
        }
        if totals::is_saturated(&self.status.totals) {
            self.note(RecordReason::Saturated);
        }
        self.status
    }

    /// The key of an attempt. A JobSet that was not known gets the next ordinal.
    fn attempt(&mut self, job_set: &str, restart: u64) -> Key {
        let totals = &mut self.status.totals;
        if let Some(known) = self.status.job_sets.iter_mut().find(|known| known.uid == job_set) {
            totals.restarts = add(totals.restarts, restart.saturating_sub(known.restart));
            known.restart = known.restart.max(restart);
            return (known.ordinal, restart);
        }
        let last = self.status.job_sets.last().map_or(0, |last| last.ordinal);
        totals.restarts = add(totals.restarts, add(restart, (last > 0).into()));
        let ordinal = add(last, 1);
        self.status.job_sets.push(RecordedJobSet { ordinal, uid: job_set.into(), restart });
        let surplus = self.status.job_sets.len().saturating_sub(JOB_SETS);
        self.status.job_sets.drain(..surplus);
        (ordinal, restart)
    }

    /// Where a Pod of an attempt counts. The second is there for an attempt that has no entry any more: what its GPUs
    /// did was lost, and is summed by cause.
    fn place(&mut self, name: &str, key: Key) -> (&mut PodSums, Option<&mut Seconds>) {
        let old = self.window().is_some_and(|first| key < first);
        let job = self.replicated_job(name);
        if old {
            let earlier = job.earlier.get_or_insert_default();
            return (&mut earlier.sums, Some(&mut earlier.wasted_by_cause));
        }
        (&mut entry(&mut job.attempts, key).sums, None)
    }

    /// The entry of a replicated job, or that of the rest.
    fn replicated_job(&mut self, name: &str) -> &mut RecordedReplicatedJob {
        let jobs = &mut self.status.replicated_jobs;
        let full = jobs.iter().filter(|job| job.name != OTHER).count() >= NAMES;
        let beyond = full && jobs.iter().all(|job| job.name == OTHER || job.name.as_str() < name);
        let name = if beyond { OTHER } else { name };
        sums::position(
            jobs,
            |job| order_of(&job.name).cmp(&order_of(name)),
            || RecordedReplicatedJob { name: name.into(), ..Default::default() },
        )
    }

    /// The first of the last attempts, if there are more than have entries, or as many.
    fn window(&self) -> Option<Key> {
        let attempts = self.status.replicated_jobs.iter().flat_map(|job| &job.attempts);
        let keys: BTreeSet<Key> = attempts.map(key_of).collect();
        keys.iter().rev().nth(ATTEMPTS - 1).copied()
    }

    /// AW1: the reason of the failed Pod with the earliest end, then by alphabet.
    fn cause_by_failure(&mut self, key: Key, share: &Share) {
        let end = Time::from(share.span.end());
        let reason = share.verdict.reason().unwrap_or_default();
        let cause = self.cause(key);
        let earlier = match &cause.at {
            None => true,
            Some(at) => (&end.0, reason) < (&at.0, cause.reason.as_str()),
        };
        if earlier {
            cause.at = Some(end);
            reason.clone_into(&mut cause.reason);
        }
    }

    /// AW1: without a failed Pod, Suspended, else Stopped.
    fn cause_by_stop(&mut self, key: Key, reason: DeletedReason) {
        let cause = self.cause(key);
        if cause.at.is_none() && reason == DeletedReason::Suspended {
            reason.as_str().clone_into(&mut cause.reason);
        }
    }

    /// The cause of an attempt. That of one without an entry is dropped by [`Self::make_room`].
    fn cause(&mut self, key: Key) -> &mut AttemptCause {
        sums::position(
            &mut self.status.causes,
            |it| (it.job_set, it.restart).cmp(&key),
            || {
                let reason = DeletedReason::Stopped.as_str().into();
                AttemptCause { job_set: key.0, restart: key.1, reason, at: None }
            },
        )
    }

    /// Keeps entries for the last attempts and the first names, and sums the others.
    fn make_room(&mut self) {
        let (settings, mut dropped) = (self.settings, false);
        if let Some(first) = self.window() {
            for job in &mut self.status.replicated_jobs {
                let kept = job.attempts.partition_point(|attempt| key_of(attempt) < first);
                for attempt in job.attempts.drain(..kept) {
                    let cause = totals::cause(&self.status.causes, &attempt);
                    let earlier = job.earlier.get_or_insert_default();
                    dropped |= fold(earlier, &attempt, cause, settings);
                }
            }
            self.status.causes.retain(|cause| (cause.job_set, cause.restart) >= first);
        }
        let jobs = &mut self.status.replicated_jobs;
        let others = usize::from(jobs.last().is_some_and(|last| last.name == OTHER));
        if jobs.len() > NAMES + others {
            let mut surplus = jobs.split_off(NAMES);
            let mut other = surplus.pop_if(|last| last.name == OTHER).unwrap_or_default();
            OTHER.clone_into(&mut other.name);
            for job in surplus {
                dropped |= merge(&mut other, job, settings);
            }
            jobs.push(other);
        }
        if dropped {
            self.note(RecordReason::TooManyResources);
        }
    }
}

/// The rest stands last.
fn order_of(name: &str) -> (bool, &str) {
    (name == OTHER, name)
}

fn entry(attempts: &mut Vec<Attempt>, key: Key) -> &mut Attempt {
    sums::position(
        attempts,
        |it| key_of(it).cmp(&key),
        || Attempt { job_set: key.0, restart: key.1, ..Default::default() },
    )
}

/// Sums an attempt that gets no entry any more. All of it was lost, since another attempt followed (AW2). Whether there was no
/// room for a resource.
fn fold(
    earlier: &mut EarlierAttempts,
    attempt: &Attempt,
    cause: &str,
    settings: &Settings,
) -> bool {
    earlier.attempts = add(earlier.attempts, 1);
    let lost = sums::gpu_seconds(&attempt.sums.seconds, settings);
    sums::add_to(&mut earlier.wasted_by_cause, cause, lost);
    sums::merge(&mut earlier.sums, &attempt.sums, settings)
}

/// Sums a replicated job that gets no entry any more. Whether there was no room for a resource.
fn merge(
    into: &mut RecordedReplicatedJob,
    from: RecordedReplicatedJob,
    settings: &Settings,
) -> bool {
    let mut dropped = false;
    for attempt in from.attempts {
        let sums = &mut entry(&mut into.attempts, key_of(&attempt)).sums;
        dropped |= sums::merge(sums, &attempt.sums, settings);
    }
    if let Some(from) = from.earlier {
        let into = into.earlier.get_or_insert_default();
        into.attempts = into.attempts.max(from.attempts);
        dropped |= sums::merge(&mut into.sums, &from.sums, settings);
        for (cause, seconds) in &from.wasted_by_cause {
            sums::add_to(&mut into.wasted_by_cause, cause, *seconds);
        }
    }
    dropped
}

#[cfg(test)]
mod tests;
