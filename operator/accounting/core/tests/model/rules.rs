//! The rules A1 to A6, judged by one who sees everything.

use std::collections::BTreeSet;

use trainjob_accounting_core::pod::Pod;
use trainjob_api::lifecycle::v1alpha1::{
    record::TrainJobRecordStatus,
    record_words::{Outcome, RecordCondition},
};

#[derive(Default)]
pub(crate) struct Rules {
    pub(crate) violations: Vec<String>,
    /// UIDs that ever were in `settling`.
    counted: BTreeSet<String>,
    /// UIDs of Pods that were gone or without finalizer at some time after they were counted.
    freed: BTreeSet<String>,
    /// UIDs of Pods without finalizer that went before they were counted.
    unprotected: BTreeSet<String>,
    /// UIDs of Pods that have no finalizer now.
    bare: BTreeSet<String>,
}

impl Rules {
    fn must(&mut self, holds: bool, rule: &str) {
        if !holds {
            self.violations.push(rule.to_owned());
        }
    }

    pub(crate) fn pod_created(&mut self, pod: &Pod) {
        if !pod.finalizer {
            self.bare.insert(pod.uid.clone());
        }
    }

    pub(crate) fn pod_changed(&mut self, before: &Pod, after: Option<&Pod>) {
        let uid = before.uid.clone();
        let bare = after.is_none_or(|after| !after.finalizer);
        if bare {
            self.bare.insert(uid.clone());
            if self.counted.contains(&uid) {
                self.freed.insert(uid.clone());
            }
        } else {
            self.bare.remove(&uid);
        }
        if after.is_none() && !self.counted.contains(&uid) {
            self.unprotected.insert(uid);
        }
    }

    pub(crate) fn released(&mut self, uid: &str) {
        let counted = self.counted.contains(uid);
        self.must(counted, &format!("A2: {uid} was released and is not counted"));
    }

    pub(crate) fn stored(&mut self, before: &TrainJobRecordStatus, after: &TrainJobRecordStatus) {
        for uid in after.settling.iter().filter(|uid| !before.settling.contains(uid)) {
            let new = self.counted.insert(uid.clone());
            self.must(new, &format!("A1: {uid} entered settling twice"));
            if self.bare.contains(uid) {
                self.freed.insert(uid.clone());
            }
        }
        for uid in before.settling.iter().filter(|uid| !after.settling.contains(uid)) {
            // A Pod that never had a finalizer is free all the time.
            let freed = self.freed.contains(uid);
            self.must(freed, &format!("A3: {uid} left settling and was never free"));
        }
        let numbers = |status: &TrainJobRecordStatus| {
            let totals = &status.totals;
            let (pods, lost) = (totals.pods, status.lost.values().sum());
            let seconds = totals.seconds.values().sum();
            [
                pods.succeeded,
                pods.failed,
                pods.deleted,
                totals.gpu_seconds,
                totals.wasted_gpu_seconds,
                seconds,
                lost,
            ]
        };
        let grown = numbers(before).iter().zip(numbers(after)).all(|(one, other)| *one <= other);
        self.must(grown, &format!("A4: {:?} after {:?}", after.totals, before.totals));
        let totals = after.totals.pods;
        let sum = totals.succeeded + totals.failed + totals.deleted;
        let counted = u64::try_from(self.counted.len()).unwrap();
        self.must(sum == counted, &format!("A5: {sum} Pods, {counted} UIDs"));
    }

    pub(crate) fn at_rest(
        &mut self,
        record: Option<&TrainJobRecordStatus>,
        pods: usize,
        left: usize,
    ) {
        self.must(left == 0, &format!("AH1: {left} Pods are held for ever"));
        let Some(record) = record else {
            let all = self.unprotected.len() == pods;
            self.must(all, &format!("A6: no record of {pods} Pods"));
            return;
        };
        let is_final = record
            .conditions
            .iter()
            .any(|it| it.type_ == RecordCondition::Final.as_str() && it.status == "True");
        self.must(is_final && record.settling.is_empty(), "Final: the record does not end");
        let complete = record.outcome == Outcome::Complete.as_str();
        self.must(complete, &format!("Final: {}", record.outcome));
        let lost = usize::try_from(record.lost.values().sum::<u64>()).unwrap();
        let counted = self.counted.len();
        self.must(counted + lost <= pods, &format!("A6: {counted} and {lost} of {pods}"));
        let excused = self.unprotected.len();
        self.must(counted + excused >= pods, &format!("A6: {counted}, {excused} of {pods}"));
        let exact = excused > 0 || lost == 0;
        self.must(exact, &format!("A6: {lost} lost, none went unprotected"));
        self.must(record.totals.pods.active == 0, "A6: Pods are open at the end");
    }
}
