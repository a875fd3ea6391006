//! The rules A1 to A9 and A11, judged by one who sees everything.

use std::collections::BTreeSet;

use trainjob_accounting_core::{
    job::{Job, Suspension},
    ledger::Ledger,
    pod::Phase,
    pod::Pod,
    settings::Settings,
    share::share,
    verdict::Order,
};
use trainjob_api::{
    lifecycle::v1alpha1::{
        record::{PodCounts, TrainJobRecordStatus},
        record_words::{Loss, Outcome, RecordCondition},
    },
    time::Timestamp,
};

use super::{process::History, world::Plot};

#[derive(Default)]
pub(crate) struct Rules {
    violations: Vec<String>,
    /// UIDs that ever were in `settling`.
    counted: BTreeSet<String>,
    /// UIDs of Pods that were gone or without finalizer at some time after they were counted.
    freed: BTreeSet<String>,
    /// UIDs of Pods that have no finalizer now.
    bare: BTreeSet<String>,
    /// UIDs of Pods that had none at some time before they were counted: they may go at any time.
    unprotected: BTreeSet<String>,
    /// UIDs of those that went before they were counted.
    uncounted: BTreeSet<String>,
    /// UIDs that were let go.
    let_go: BTreeSet<String>,
}

/// A version of the record, and what it was made from.
pub(crate) struct Stored<'a> {
    pub(crate) before: &'a TrainJobRecordStatus,
    pub(crate) after: &'a TrainJobRecordStatus,
    /// The time of who planned it.
    pub(crate) planned_at: Timestamp,
    pub(crate) pods: &'a [History],
}

impl Rules {
    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// How many Pods went uncounted, and how many were let go.
    pub(crate) fn uncounted(&self) -> (usize, usize) {
        (self.uncounted.len(), self.let_go.len())
    }

    fn must(&mut self, holds: bool, violated: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(violated());
        }
    }

    pub(crate) fn pod_created(&mut self, pod: &Pod) {
        if !pod.finalizer {
            self.bare.insert(pod.uid.clone());
            self.unprotected.insert(pod.uid.clone());
        }
    }

    pub(crate) fn pod_changed(&mut self, before: &Pod, after: &Pod, goes: bool) {
        let uid = &before.uid;
        let is_counted = self.counted.contains(uid);
        if goes || !after.finalizer {
            self.bare.insert(uid.clone());
            let of = if is_counted { &mut self.freed } else { &mut self.unprotected };
            of.insert(uid.clone());
        } else {
            self.bare.remove(uid);
        }
        if goes && !is_counted {
            self.uncounted.insert(uid.clone());
        }
    }

    pub(crate) fn released(&mut self, uid: &str, is_counted: bool, is_refusing: bool) {
        if is_counted {
            let counted = self.counted.contains(uid);
            self.must(counted, || format!("A2: {uid} was released and is not counted"));
        } else {
            self.must(is_refusing, || format!("A2: {uid} was let go, and writes succeed"));
            self.let_go.insert(uid.to_owned());
        }
    }

    pub(crate) fn stored(&mut self, stored: &Stored<'_>) {
        let Stored { before, after, .. } = *stored;
        let new = |uid: &&String| !before.settling.contains(uid);
        let entered: Vec<_> = after.settling.iter().filter(new).collect();
        for uid in &entered {
            let is_new = self.counted.insert((*uid).clone());
            self.must(is_new, || format!("A1: {uid} entered settling twice"));
            self.uncounted.remove(*uid);
            if self.bare.contains(*uid) {
                self.freed.insert((*uid).clone());
            }
        }
        for uid in before.settling.iter().filter(|uid| !after.settling.contains(uid)) {
            let freed = self.freed.contains(uid);
            self.must(freed, || format!("A3: {uid} left settling and was never free"));
        }
        let grown = numbers(before).iter().zip(numbers(after)).all(|(one, other)| *one <= other);
        self.must(grown, || format!("A4: {:?} after {:?}", after.totals, before.totals));
        let (sum, parts) = (after.totals.pods, of_replicated_jobs(after));
        self.must(sum == parts, || format!("A4: {sum:?} of {parts:?}"));
        let (sum, counted) = (ended(sum), self.counted.len() as u64);
        self.must(sum == counted, || format!("A5: {sum} Pods, {counted} UIDs"));
        self.judge_shares(stored, &entered);
        let same = TrainJobRecordStatus { as_of: before.as_of.clone(), ..after.clone() } == *before;
        self.must(!same, || "A9: a write that changes nothing".into());
    }

    /// A7: the shares of the Pods that entered are those of their last versions. What those come to whose end nobody
    /// had to see is not known here, but not less than nothing.
    fn judge_shares(&mut self, stored: &Stored<'_>, entered: &[&String]) {
        let Stored { before, after, planned_at, pods } = *stored;
        let (mut least, mut most) = (Sums::default(), Sums::default());
        for uid in entered {
            let pod = pods.iter().map(History::last).find(|pod| pod.uid == **uid).unwrap();
            let sums = Sums::of(pod, planned_at);
            if self.unprotected.contains(*uid) {
                most = most.and(Sums { seconds: longest(pod, planned_at), ..Sums::ONE_EACH });
            } else {
                (least, most) = (least.and(sums), most.and(sums));
            }
        }
        let added = Sums::added(before, after);
        let fits = least.is_within(added) && added.is_within(most);
        self.must(fits, || format!("A7: {added:?}, expected {least:?} to {most:?}"));
    }

    /// A8: after the longest time for which the record may hold Pods, none is held.
    pub(crate) fn held(&mut self, pods: &[History]) {
        let held = pods.iter().filter_map(History::newest).filter(|pod| {
            pod.deletion.is_some() && (pod.is_terminal() || pod.node.is_none()) && pod.finalizer
        });
        let held: Vec<_> = held.map(|pod| pod.uid.as_str()).collect();
        self.must(held.is_empty(), || format!("A8: {held:?} are held for too long"));
    }

    /// AH2: what was let go is told of.
    pub(crate) fn told(&mut self, record: Option<&TrainJobRecordStatus>, seed: u64) {
        let key = Loss::RecordUnwritable.as_str();
        let told = record.and_then(|record| record.lost.get(key)).copied().unwrap_or_default();
        let let_go = self.let_go.len() as u64;
        self.must(told == let_go, || format!("A6: seed {seed}: {let_go} let go, {told} told of"));
    }

    pub(crate) fn never_rests(&mut self) {
        self.violations.push("A9: it never comes to rest".into());
    }

    pub(crate) fn at_rest(
        &mut self,
        record: Option<&TrainJobRecordStatus>,
        pods: &[History],
        plot: Plot,
    ) {
        let left = pods.iter().filter(|pod| pod.newest().is_some()).count();
        self.must(left == 0, || format!("A8: {left} Pods are held for ever"));
        let all = pods.len();
        let excused = self.uncounted.len();
        let Some(record) = record else {
            return self.must(excused == all, || format!("A6: no record of {all} Pods"));
        };
        let is_final = record
            .conditions
            .iter()
            .any(|it| it.type_ == RecordCondition::Final.as_str() && it.status == "True");
        let ends = is_final && record.settling.is_empty() && record.totals.pods.active == 0;
        self.must(ends, || "A6: the record does not end".into());
        let complete = record.outcome == Outcome::Complete.as_str();
        self.must(complete, || format!("A6: {}", record.outcome));
        let lost = usize::try_from(record.lost.values().sum::<u64>()).unwrap();
        let counted = self.counted.len();
        self.must(counted + lost <= all, || format!("A6: {counted} and {lost} of {all}"));
        self.must(counted + excused == all, || format!("A6: {counted}, {excused} of {all}"));
        let tells = excused == 0 || counted > 0 || !record.inexact.is_empty();
        self.must(tells, || format!("A6: {excused} went, none is counted, and it is exact"));
        if plot.is_comparable() {
            let undisturbed = undisturbed(pods);
            let (found, expected) = (comparable(record), comparable(&undisturbed));
            self.must(found == expected, || format!("A11: {found:?}, expected {expected:?}"));
        }
    }
}

/// What a run without accidents ends in: each Pod is counted, as it was at its end.
fn undisturbed(pods: &[History]) -> TrainJobRecordStatus {
    let settings = Settings::default();
    let mut ledger = Ledger::new(TrainJobRecordStatus::default(), &settings);
    for pod in pods.iter().map(History::last) {
        let job = Job::Running { suspension: Suspension::Never };
        // Its last version is released already.
        let pod = Pod { finalizer: true, ..pod.clone() };
        ledger.count(&share(&pod, Order::Unknown, &job, Timestamp(i64::MAX)));
    }
    ledger.finish(Outcome::Complete)
}

/// All of a record that says what was counted.
fn comparable(record: &TrainJobRecordStatus) -> TrainJobRecordStatus {
    TrainJobRecordStatus {
        started_at: record.started_at.clone(),
        ended_at: record.ended_at.clone(),
        totals: record.totals.clone(),
        job_sets: record.job_sets.clone(),
        causes: record.causes.clone(),
        replicated_jobs: record.replicated_jobs.clone(),
        exit_codes: record.exit_codes.clone(),
        first_failures: record.first_failures.clone(),
        lost: record.lost.clone(),
        inexact: record.inexact.clone(),
        ..TrainJobRecordStatus::default()
    }
}

/// What a Pod, or several, add to the totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sums {
    succeeded: u64,
    failed: u64,
    deleted: u64,
    seconds: u64,
}

impl Sums {
    const ONE_EACH: Self = Self { succeeded: 1, failed: 1, deleted: 1, seconds: 0 };

    /// By AE2 and AT1 to AT3, as far as these Pods need them.
    fn of(pod: &Pod, now: Timestamp) -> Self {
        let seconds = match pod.containers.first().and_then(|it| it.last_real_end()) {
            Some(end) => u64::try_from(end.at.min(now).since(pod.created_at)).unwrap_or_default(),
            None => 0,
        };
        let seen = pod.generations.map_or(0, |it| it.current - it.observed);
        let none = Self { seconds, ..Self::default() };
        match pod.phase {
            Phase::Succeeded => Self { succeeded: 1, ..none },
            Phase::Failed if pod.deletion.is_none() || seen > 0 => Self { failed: 1, ..none },
            Phase::Failed | Phase::Open => Self { deleted: 1, ..none },
        }
    }

    fn added(before: &TrainJobRecordStatus, after: &TrainJobRecordStatus) -> Self {
        let (before, after) = (&before.totals, &after.totals);
        Self {
            succeeded: after.pods.succeeded.saturating_sub(before.pods.succeeded),
            failed: after.pods.failed.saturating_sub(before.pods.failed),
            deleted: after.pods.deleted.saturating_sub(before.pods.deleted),
            seconds: after.gpu_seconds.saturating_sub(before.gpu_seconds),
        }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            succeeded: self.succeeded + other.succeeded,
            failed: self.failed + other.failed,
            deleted: self.deleted + other.deleted,
            seconds: self.seconds + other.seconds,
        }
    }

    const fn is_within(self, most: Self) -> bool {
        self.succeeded <= most.succeeded
            && self.failed <= most.failed
            && self.deleted <= most.deleted
            && self.seconds <= most.seconds
    }
}

/// The longest that a Pod can be charged for.
fn longest(pod: &Pod, now: Timestamp) -> u64 {
    u64::try_from(now.since(pod.created_at)).unwrap_or_default()
}

/// What never falls.
fn numbers(status: &TrainJobRecordStatus) -> [u64; 7] {
    let totals = &status.totals;
    let (pods, lost) = (totals.pods, status.lost.values().sum());
    let seconds = totals.seconds.values().sum();
    let (gpus, wasted) = (totals.gpu_seconds, totals.wasted_gpu_seconds);
    [pods.succeeded, pods.failed, pods.deleted, gpus, wasted, seconds, lost]
}

const fn ended(pods: PodCounts) -> u64 {
    pods.succeeded + pods.failed + pods.deleted
}

fn of_replicated_jobs(status: &TrainJobRecordStatus) -> PodCounts {
    let attempts = status.replicated_jobs.iter().flat_map(|job| &job.attempts);
    let mut sum = PodCounts::default();
    for pods in attempts.map(|attempt| attempt.sums.pods) {
        sum.active += pods.active;
        sum.succeeded += pods.succeeded;
        sum.failed += pods.failed;
        sum.deleted += pods.deleted;
    }
    sum
}
