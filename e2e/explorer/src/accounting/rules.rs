//! The rules A1 to A9, A11 and A12, judged by one who sees everything.

mod end;

use std::collections::{BTreeMap, BTreeSet};

use trainjob_accounting_core::pod::Pod;
use trainjob_api::{
    lifecycle::v1alpha1::{
        record::{
            ATTEMPTS, FAILURES, FAILURES_PER_ATTEMPT, JOB_SETS, NAMES, SETTLING,
            TrainJobRecordStatus,
        },
        record_words::Outcome,
    },
    time::Timestamp,
};

use super::{
    history::History,
    rule::Rule,
    sums::{Sums, ended, numbers, of_replicated_jobs, unwatched},
};
use crate::violation::Violation;

/// What was seen, and the first rule that was broken.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) violation: Option<Violation<Rule>>,
    /// UIDs that ever were in `settling` of any record.
    counted: BTreeSet<String>,
    /// UIDs that ever were in `settling` of the record that is there, or of the last one.
    counted_here: BTreeSet<String>,
    /// UIDs of Pods that were gone or without finalizer at some time after they were counted.
    freed: BTreeSet<String>,
    /// UIDs of Pods that have no finalizer now.
    bare: BTreeSet<String>,
    /// UIDs of Pods that had none, or no labels of ours, at some time before they were counted: they may go at any time.
    unprotected: BTreeSet<String>,
    /// UIDs of Pods that lost our labels: the next process does not see them, and only a search finds them (AH7).
    unlabelled: BTreeSet<String>,
    /// UIDs of those that went before they were counted.
    uncounted: BTreeSet<String>,
    /// UIDs that were let go.
    let_go: BTreeSet<String>,
    /// Which processes have decided to let a Pod go, by its UID.
    given_up_by: BTreeMap<String, BTreeSet<Leader>>,
    /// How many Pods each process has told of as unwatched in the record that is there, or in the last one.
    unwatched_by: BTreeMap<Leader, u64>,
    /// UIDs of Pods that were deleted by force before their end was reported.
    forced: BTreeSet<String>,
    /// UIDs of Pods that a suspension deleted.
    suspended: BTreeSet<String>,
    /// When what the TrainJob says of being suspended changed last.
    suspended_at: Option<i64>,
    /// When each Pod had ended at the latest.
    ended_at: BTreeMap<String, i64>,
    /// How many records somebody deleted.
    deleted_records: usize,
}

/// A process that leads, or believes it does: its place, and how many there were before it in that place.
pub(super) type Leader = (usize, u64);

/// A version of the record, and what it was made from.
pub(super) struct Change<'a> {
    pub(super) before: &'a TrainJobRecordStatus,
    pub(super) after: &'a TrainJobRecordStatus,
    /// Which process planned it.
    pub(super) by: Leader,
    /// The time of who planned it.
    pub(super) planned_at: Timestamp,
    /// Whether who planned it has to know of suspensions.
    pub(super) knows_job: bool,
    pub(super) pods: &'a [History],
}

impl Rules {
    /// How many Pods were counted, how many went before that, and how many were let go.
    pub(super) fn numbers(&self) -> (usize, usize, usize) {
        (self.counted.len(), self.uncounted.len(), self.let_go.len())
    }

    fn must(&mut self, holds: bool, rule: Rule, what: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(Violation { rule, what: what() });
        }
    }

    pub(super) fn pod_created(&mut self, pod: &Pod) {
        if !pod.finalizer {
            self.bare.insert(pod.uid.to_string());
            self.unprotected.insert(pod.uid.to_string());
        }
    }

    pub(super) fn pod_changed(&mut self, before: &Pod, after: &Pod, goes: bool) {
        let uid = &*before.uid;
        let is_counted = self.counted_here.contains(uid);
        if goes || !after.finalizer {
            self.bare.insert(uid.to_owned());
            let of = if is_counted { &mut self.freed } else { &mut self.unprotected };
            of.insert(uid.to_owned());
        } else {
            self.bare.remove(uid);
        }
        if goes && !is_counted {
            self.uncounted.insert(uid.to_owned());
        }
    }

    /// A Pod is deleted by force that may still run.
    pub(super) fn forced(&mut self, uid: &str) {
        self.forced.insert(uid.to_owned());
    }

    pub(super) fn loses_labels(&mut self, uid: &str) {
        self.unprotected.insert(uid.to_owned());
        self.unlabelled.insert(uid.to_owned());
    }

    /// What the TrainJob says of being suspended changes.
    pub(super) const fn suspends(&mut self, at: i64) {
        self.suspended_at = Some(at);
    }

    /// A suspension deletes a Pod. Of one that was created in the same second nobody can say that.
    pub(super) fn suspended(&mut self, pod: &Pod, at: i64) {
        if pod.created_at.0 < at {
            self.suspended.insert(pod.uid.to_string());
        }
    }

    pub(super) fn record_deleted(&mut self) {
        self.deleted_records += 1;
    }

    /// A record was created.
    pub(super) fn created(&mut self, is_first: bool) {
        self.must(is_first, Rule::A12, || "there are two records".into());
        self.counted_here.clear();
        self.unwatched_by.clear();
        // Those that the record before has freed are held no longer, so this one counts them as they were last seen.
        self.unprotected.append(&mut self.freed);
    }

    /// A status is written.
    pub(super) fn written(&mut self, is_ours: bool, has_version: bool) {
        self.must(is_ours, Rule::A12, || "the record of another TrainJob is written".into());
        self.must(has_version, Rule::A9, || "a status is written without a version".into());
    }

    /// When a Pod had ended at the latest; the beginning of time, if that is not known.
    pub(super) fn ended_at(&self, uid: &str) -> i64 {
        self.ended_at.get(uid).copied().filter(|_| !self.unprotected.contains(uid)).unwrap_or(0)
    }

    /// Somebody may have seen the end of a Pod by now.
    pub(super) fn ends(&mut self, uid: &str, at: i64) {
        let known = self.ended_at.entry(uid.to_owned()).or_insert(at);
        *known = at.min(*known);
    }

    /// A process decides to let a Pod go.
    pub(super) fn lets_go(
        &mut self,
        process: Leader,
        uid: &str,
        may: bool,
        (now, from): (i64, i64),
    ) {
        self.given_up_by.entry(uid.to_owned()).or_default().insert(process);
        self.must(may, Rule::A2, || format!("{uid} is let go at {now}, not from {from} on"));
    }

    pub(super) fn released(&mut self, uid: &str, is_counted: bool) {
        if is_counted {
            let counted = self.counted.contains(uid);
            self.must(counted, Rule::A2, || format!("{uid} is released and is not counted"));
        } else {
            self.let_go.insert(uid.to_owned());
        }
    }

    pub(super) fn stored(&mut self, change: &Change<'_>) {
        let Change { before, after, by, .. } = *change;
        let told = unwatched(after).saturating_sub(unwatched(before));
        *self.unwatched_by.entry(by).or_default() += told;
        let new = |uid: &&String| !before.settling.contains(uid);
        let entered: Vec<_> = after.settling.iter().filter(new).collect();
        for uid in &entered {
            self.counted.insert((*uid).clone());
            let is_new = self.counted_here.insert((*uid).clone());
            self.must(is_new, Rule::A1, || format!("{uid} entered settling twice"));
            self.uncounted.remove(*uid);
            if self.bare.contains(*uid) {
                self.freed.insert((*uid).clone());
            }
        }
        for uid in before.settling.iter().filter(|uid| !after.settling.contains(uid)) {
            let freed = self.freed.contains(uid) || self.unlabelled.contains(uid);
            self.must(freed, Rule::A3, || format!("{uid} left settling and was never free"));
        }
        let grown = numbers(before).iter().zip(numbers(after)).all(|(one, other)| *one <= other);
        let totals = || format!("{:?} after {:?}", after.totals, before.totals);
        self.must(grown, Rule::A4, totals);
        let has_fallen = after.totals.wasted_gpu_seconds < before.totals.wasted_gpu_seconds;
        self.must(!has_fallen || is_corrected(before, after), Rule::A4, totals);
        let (sum, parts) = (after.totals.pods, of_replicated_jobs(after));
        self.must(sum == parts, Rule::A4, || format!("{sum:?} of {parts:?}"));
        let (sum, counted) = (ended(sum), self.counted_here.len() as u64);
        self.must(sum == counted, Rule::A5, || format!("{sum} Pods, {counted} UIDs"));
        self.judge_shares(change, &entered);
        self.judge_bounds(after);
        let same = TrainJobRecordStatus { as_of: before.as_of.clone(), ..after.clone() } == *before;
        self.must(!same, Rule::A9, || "a write that changes nothing".into());
    }

    /// A7: the shares of the Pods that entered are those of their last versions. What those come to whose end nobody
    /// had to see is not known here, but not less than nothing.
    fn judge_shares(&mut self, change: &Change<'_>, entered: &[&String]) {
        let Change { before, after, planned_at, knows_job, pods, .. } = *change;
        let (mut least, mut most) = (Sums::default(), Sums::default());
        for uid in entered {
            let Some(pod) = pods.iter().map(|it| &it.last).find(|pod| *pod.uid == ***uid) else {
                return self.must(false, Rule::A7, || format!("{uid} never was"));
            };
            let is_reported = pod.is_terminal() && self.forced.contains(*uid);
            if is_reported || self.unprotected.contains(*uid) {
                most = most.and(Sums::most(pod, planned_at));
                continue;
            }
            let sums = Sums::of(pod, planned_at);
            let stopped = if pod.node.is_some() { sums.deleted } else { 0 };
            let has_to = knows_job && self.suspended.contains(*uid);
            let may = self.suspended_at.is_some_and(|at| pod.created_at.0 <= at);
            least = least.and(Sums { suspended: if has_to { stopped } else { 0 }, ..sums });
            most = most.and(Sums { suspended: if may { stopped } else { 0 }, ..sums });
        }
        let added = Sums::added(before, after);
        let fits = least.is_within(added) && added.is_within(most);
        self.must(fits, Rule::A7, || format!("{added:?}, expected {least:?} to {most:?}"));
    }

    /// A8: the bounds of the record.
    fn judge_bounds(&mut self, status: &TrainJobRecordStatus) {
        let attempts = status.replicated_jobs.iter().map(|job| job.attempts.len()).max();
        let mut failures = BTreeMap::<_, usize>::new();
        for failure in &status.first_failures {
            *failures.entry((failure.job_set, failure.restart)).or_default() += 1;
        }
        let most = failures.values().max().copied().unwrap_or_default();
        let sizes = [
            (status.settling.len(), SETTLING),
            (status.job_sets.len(), JOB_SETS),
            (attempts.unwrap_or_default(), ATTEMPTS),
            (status.causes.len(), ATTEMPTS),
            (status.first_failures.len(), FAILURES),
            (most, FAILURES_PER_ATTEMPT),
            (status.exit_codes.len(), NAMES + 1),
        ];
        let fits = sizes.iter().all(|(size, bound)| size <= bound);
        self.must(fits, Rule::A8, || format!("bounds: {sizes:?}"));
    }
}

/// One leader saw the TrainJob go and stored that it was deleted, by which all is wasted; the other knows how it had finished.
fn is_corrected(before: &TrainJobRecordStatus, after: &TrainJobRecordStatus) -> bool {
    before.outcome == Outcome::Deleted.as_str() && after.outcome != before.outcome
}
