//! What Pods add to the totals of a record, by a version of AE2 and AT1 to AT3 of its own, as far as these Pods need them.

use trainjob_accounting_core::pod::{Container, Phase, Pod};
use trainjob_api::{
    lifecycle::v1alpha1::{
        record::{PodCounts, PodSums, TrainJobRecordStatus},
        record_words::{DeletedReason, Loss},
    },
    time::Timestamp,
};

/// What a Pod, or several, add to the totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sums {
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) deleted: u64,
    pub(super) suspended: u64,
    pub(super) seconds: u64,
}

impl Sums {
    /// The most that a Pod can add of which nobody had to see the end.
    pub(super) fn most(pod: &Pod, now: Timestamp) -> Self {
        let seconds = u64::try_from(now.since(pod.created_at)).unwrap_or_default();
        Self { succeeded: 1, failed: 1, deleted: 1, suspended: 1, seconds }
    }

    pub(super) fn of(pod: &Pod, now: Timestamp) -> Self {
        let end = pod.containers.first().and_then(Container::last_real_end).map(|end| end.at);
        let end = end.or_else(|| pod.deletion.map(|deletion| deletion.at));
        let end = end.filter(|_| pod.node.is_some()).unwrap_or(pod.created_at);
        let seconds = u64::try_from(end.min(now).since(pod.created_at)).unwrap_or_default();
        let unseen = pod.generations.map_or(0, |it| it.current - it.observed);
        let none = Self { seconds, ..Self::default() };
        match pod.phase {
            Phase::Succeeded => Self { succeeded: 1, ..none },
            Phase::Failed if pod.deletion.is_none() || unseen > 0 => Self { failed: 1, ..none },
            Phase::Failed | Phase::Open => Self { deleted: 1, ..none },
        }
    }

    pub(super) fn added(before: &TrainJobRecordStatus, after: &TrainJobRecordStatus) -> Self {
        let suspended = suspended(after).saturating_sub(suspended(before));
        let (before, after) = (&before.totals, &after.totals);
        Self {
            succeeded: after.pods.succeeded.saturating_sub(before.pods.succeeded),
            failed: after.pods.failed.saturating_sub(before.pods.failed),
            deleted: after.pods.deleted.saturating_sub(before.pods.deleted),
            suspended,
            seconds: after.gpu_seconds.saturating_sub(before.gpu_seconds),
        }
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            succeeded: self.succeeded + other.succeeded,
            failed: self.failed + other.failed,
            deleted: self.deleted + other.deleted,
            suspended: self.suspended + other.suspended,
            seconds: self.seconds + other.seconds,
        }
    }

    pub(super) const fn is_within(self, most: Self) -> bool {
        self.succeeded <= most.succeeded
            && self.failed <= most.failed
            && self.deleted <= most.deleted
            && self.suspended <= most.suspended
            && self.seconds <= most.seconds
    }
}

/// All sums over Pods of a record.
fn parts(status: &TrainJobRecordStatus) -> impl Iterator<Item = &PodSums> {
    status.replicated_jobs.iter().flat_map(|job| {
        let earlier = job.earlier.iter().map(|earlier| &earlier.sums);
        job.attempts.iter().map(|attempt| &attempt.sums).chain(earlier)
    })
}

fn suspended(status: &TrainJobRecordStatus) -> u64 {
    let reason = DeletedReason::Suspended.as_str();
    parts(status).filter_map(|sums| sums.reasons.get(reason)).sum()
}

/// How many Pods a record says went unseen.
pub(super) fn unwatched(status: &TrainJobRecordStatus) -> u64 {
    status.lost.get(Loss::Unwatched.as_str()).copied().unwrap_or_default()
}

/// What never falls, but for what was wasted.
pub(super) fn numbers(status: &TrainJobRecordStatus) -> [u64; 6] {
    let totals = &status.totals;
    let (pods, lost) = (totals.pods, status.lost.values().sum());
    let seconds = totals.seconds.values().sum();
    [pods.succeeded, pods.failed, pods.deleted, totals.gpu_seconds, seconds, lost]
}

pub(super) const fn ended(pods: PodCounts) -> u64 {
    pods.succeeded + pods.failed + pods.deleted
}

pub(super) fn of_replicated_jobs(status: &TrainJobRecordStatus) -> PodCounts {
    let mut sum = PodCounts::default();
    for pods in parts(status).map(|sums| sums.pods) {
        sum.active += pods.active;
        sum.succeeded += pods.succeeded;
        sum.failed += pods.failed;
        sum.deleted += pods.deleted;
    }
    sum
}
