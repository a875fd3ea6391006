//! What is wrong with a life in which Pods were counted, and what its record says in the end.

use std::collections::BTreeSet;

use invariants::Millis;
use invariants::accounting::{AccountingHistory, PodVersion, RecordVersion, Terms, check};
use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus;

use crate::faults::blow::Blow;
use crate::faults::case::Case;
use crate::faults::strike::ENDLESS;
use crate::testenv::accounting::holds;

/// After which a Pod is let go whose record cannot be written, in milliseconds.
pub(super) const HOLD_LIMIT: Millis = 10_000;
/// How much longer a Pod may be held (AH4).
const GRACE: Millis = 15_000;
/// How much slower all may be on a busy machine.
const BUSY: Millis = 10_000;
/// How long whoever is refused may wait before the next try.
const BACKOFF: Millis = 30_000;
/// Seconds are cut off.
const SECOND: Millis = 1_000;

/// What judging found.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    /// What is wrong.
    pub(super) broken: Vec<String>,
    /// What the record says in the end, if nothing was lost.
    pub(super) receipt: Option<String>,
}

/// What was lived.
pub(super) struct Lived<'a> {
    pub(super) history: &'a AccountingHistory,
    pub(super) case: Option<&'a Case>,
    /// Whether the Pods had no finalizer.
    pub(super) observes: bool,
    /// Whether there has to be a record.
    pub(super) needs_record: bool,
}

impl Lived<'_> {
    /// Judges it.
    pub(super) fn judge(&self) -> Judgement {
        let let_go = self.let_go();
        let excused = if self.observes {
            self.history.pods.iter().map(|pod| pod.uid.clone()).collect()
        } else if self.is_endless() {
            let_go.iter().map(|(held, _)| held.uid.clone()).collect()
        } else {
            BTreeSet::new()
        };
        let longest_hold = self.longest_hold();
        let terms = Terms { excused, longest_hold, ..Terms::default() };
        let mut broken: Vec<_> =
            check(self.history, &terms).iter().map(ToString::to_string).collect();
        broken.extend(let_go.iter().filter_map(|(held, free)| let_go_early(held, free)));
        let records: BTreeSet<_> = self.history.records.iter().map(|it| &it.uid).collect();
        let last = self.history.records.iter().max_by_key(|it| it.revision);
        let Some(last) = last else {
            if self.needs_record {
                broken.push("there is no record".to_owned());
            }
            return Judgement { broken, receipt: None };
        };
        if records.len() > 1 {
            broken.push(format!("there are {} records", records.len()));
        }
        broken.extend(self.untold(last, let_go.len()));
        let receipt = last.status.lost.is_empty().then(|| receipt(&last.status));
        Judgement { broken, receipt }
    }

    /// Pods that were released and never counted, each as it was first seen ended, and as it was free.
    fn let_go(&self) -> Vec<(&PodVersion, &PodVersion)> {
        let records = self.history.records.iter();
        let counted: BTreeSet<_> = records.flat_map(|it| &it.status.settling).collect();
        let uids: BTreeSet<_> = self.history.pods.iter().map(|pod| &pod.uid).collect();
        let freed = uids.difference(&counted).filter_map(|uid| {
            let mut versions: Vec<_> =
                self.history.pods.iter().filter(|it| it.uid == **uid).collect();
            versions.sort_by_key(|version| version.revision);
            let held = versions.iter().find(|it| it.finalizer && it.ended)?;
            let later = versions.iter().filter(|it| it.revision > held.revision);
            let free = later.into_iter().find(|it| it.gone || !it.finalizer)?;
            Some((*held, *free))
        });
        freed.collect()
    }

    /// What the record does not tell of.
    fn untold(&self, last: &RecordVersion, let_go: usize) -> Vec<String> {
        let status = &last.status;
        let pods = status.totals.pods;
        let counted = pods.succeeded + pods.failed + pods.deleted;
        let uids: BTreeSet<_> = self.history.pods.iter().map(|pod| &pod.uid).collect();
        let (marked, gone) = (uids.len() as u64, status.lost.values().sum::<u64>());
        let mut untold = Vec::new();
        if !holds(status, "Final") {
            untold.push("the record is not final".to_owned());
        }
        if holds(status, "Exact") && (counted < marked || gone > 0) {
            untold.push(format!("{counted} of {marked} are counted, and the record is exact"));
        }
        let unwritable = status.lost.get("RecordUnwritable").copied().unwrap_or_default();
        if unwritable != let_go as u64 {
            untold.push(format!("{let_go} were let go, and the record tells of {unwritable}"));
        }
        if !self.observes && counted + gone != marked {
            untold.push(format!("{counted} are counted and {gone} lost of {marked}"));
        }
        untold
    }

    fn blows(&self) -> impl Iterator<Item = &Blow> {
        self.case.into_iter().flat_map(Case::blows)
    }

    fn is_endless(&self) -> bool {
        self.blows().any(|blow| blow.fault.is_endless())
    }

    /// AH4. Whom the PATCH of a Pod is refused can only try again (AH5).
    fn longest_hold(&self) -> Millis {
        let is_refused = |blow: &Blow| blow.fault.is_endless() && blow.call.purpose == "patch pods";
        let refused = if self.blows().any(is_refused) {
            Millis::try_from(ENDLESS.as_millis()).unwrap_or_default() + BACKOFF
        } else {
            0
        };
        HOLD_LIMIT + GRACE + BUSY + refused
    }
}

/// AH2: nothing is let go before the limit has passed.
fn let_go_early(held: &PodVersion, free: &PodVersion) -> Option<String> {
    let after = free.at - held.at;
    let is_early = after < HOLD_LIMIT - SECOND;
    is_early.then(|| format!("A8: Pod {} was let go after {after} ms", held.name))
}

/// What a record says that does not depend on when things happened.
fn receipt(status: &TrainJobRecordStatus) -> String {
    let attempts = status.replicated_jobs.iter().flat_map(|job| &job.attempts);
    let attempts: Vec<_> = attempts
        .map(|it| {
            format!("{}/{}: {:?} {:?}", it.job_set, it.restart, it.sums.pods, it.sums.reasons)
        })
        .collect();
    let causes = status.causes.iter().map(|it| (it.job_set, it.restart, &it.reason));
    let causes: Vec<_> = causes.collect();
    format!(
        "{}, {} restarts, {}, causes {causes:?}, exit codes {:?}, inexact {:?}, settling {:?}",
        status.outcome,
        status.totals.restarts,
        attempts.join(", "),
        status.exit_codes,
        status.inexact,
        status.settling,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(revision: u64, at: Millis, finalizer: bool) -> PodVersion {
        PodVersion {
            revision,
            at,
            name: "ns/a".into(),
            uid: "a".into(),
            job: "j".into(),
            finalizer,
            accounted: !finalizer,
            ended: true,
            deleted: true,
            gone: false,
            charge: None,
        }
    }

    /// A record that is final, with this beside.
    fn record(revision: u64, more: &serde_json::Value) -> RecordVersion {
        let condition = |name: &str, status: &str| {
            json!({"type": name, "status": status, "reason": "r", "message": "",
                   "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let exact = if more["lost"].is_null() { "True" } else { "False" };
        let mut status = json!({
            "outcome": "Complete",
            "conditions": [condition("Final", "True"), condition("Exact", exact)],
        });
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        RecordVersion {
            revision,
            at: 0,
            name: "ns/r".into(),
            uid: "r".into(),
            job: "j".into(),
            status: serde_json::from_value(status).unwrap(),
            gone: false,
        }
    }

    #[test]
    fn what_was_let_go_is_late_told_of_and_the_fault_lasts() {
        let lost = json!({"lost": {"RecordUnwritable": 1}});
        let untold = json!({});
        let early = 5_000;
        let late = 12_000;
        for (case, fault, freed, says, wrong) in [
            ("as it has to be", "403-ever", late, &lost, 0),
            ("too early", "403-ever", early, &lost, 1),
            ("not told of", "403-ever", late, &untold, 3),
            ("the fault was over", "403x3", late, &lost, 2),
        ] {
            let history = AccountingHistory {
                pods: vec![pod(1, 0, true), pod(2, freed, false)],
                records: vec![record(3, says)],
                end: 20_000,
                ..AccountingHistory::default()
            };
            let named = format!("counted-delete/create trainjobrecords 1/{fault}");
            let named: Case = named.parse().unwrap();
            let lived = Lived {
                history: &history,
                case: Some(&named),
                observes: false,
                needs_record: true,
            };
            let judgement = lived.judge();
            assert_eq!(judgement.broken.len(), wrong, "{case}: {:?}", judgement.broken);
        }
    }
}
