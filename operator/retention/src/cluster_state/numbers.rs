//! What metrics say of finished objects (`docs/retention.md`, 7).
//!
//! A [tally](super::tally) is about one policy, for its status. These numbers are about a kind, and each object counts
//! once, for the policy in Enforce that governs it.

use std::collections::BTreeMap;

use trainjob_api::time::Timestamp;
use trainjob_core::{Now, facts::ObjectKey};
use trainjob_retention_core::{
    plan::{Plan, State},
    policies::Governed,
    uid::Uid,
};

use super::{
    ClusterState,
    found::{Finding, is_to_be_deleted},
    kind::Kind,
    object::{Object, ObjectPods},
    tally::is_stuck,
};
use crate::key::TargetId;

/// What is counted of the finished objects of a kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// How many objects policies in Enforce govern, by state.
    pub states: BTreeMap<State, u64>,
    /// For how many seconds the object has been due that has been due longest; 0 if none is due.
    pub due_longest: i64,
    /// For how many seconds a hold has kept the object that it has kept longest beyond its time; 0 if none is held.
    pub held_longest: i64,
    /// How many objects have been terminating for more than ten minutes (R36).
    pub stuck: u64,
    /// How many objects are due by each policy, also by one in Audit.
    pub would_delete: BTreeMap<Uid, u64>,
    /// Up to which object it was counted; `None`: none was.
    pub(super) after: Option<ObjectKey>,
}

impl ClusterState {
    /// Counts so many objects more of a kind for its metrics, and changes nothing by that. True if there are more. Of a kind
    /// that is not known completely nothing is counted.
    ///
    /// It is planned for those alone of which the last survey does not say what is found of them now.
    pub fn count(
        &mut self,
        target: TargetId,
        numbers: &mut Numbers,
        count: usize,
        now: Now,
    ) -> bool {
        let time = now.reached().unwrap_or(now.stamp());
        let Some(kind) = self.kinds.get_mut(target.0) else { return false };
        if !kind.is_listed || !kind.evaluation.is_judged() {
            return false;
        }
        let after = numbers.after.take();
        let (mut planned, mut counted, mut last) = (Vec::new(), 0, None);
        for object in kind.objects.after(after.as_ref()).take(count) {
            (counted, last) = (counted + 1, Some(&object.key));
            if !numbers.count_found(kind, object, time) {
                planned.push(object.key.clone());
            }
        }
        numbers.after = last.cloned();
        for key in planned {
            let policies = kind.there(&mut self.namespaces, &key.namespace);
            let Some(object) = kind.objects.get(&key) else { continue };
            let answers = object.known_answers();
            if let Some(governed) = policies.governing(&object.facts) {
                let plan = governed.plan(&answers, &kind.groups, time);
                numbers.govern(&governed, &plan, time);
                numbers.expect(&plan, time);
            }
            for governed in policies.audited(&object.facts) {
                numbers.expect(&governed.plan(&answers, &kind.groups, time), time);
            }
        }
        counted == count
    }
}

impl Numbers {
    /// Counts an object by what was found of it. False if that does not hold, or does not say enough.
    fn count_found(&mut self, kind: &Kind, object: &Object, now: Timestamp) -> bool {
        let edition = kind.surveys.edition(object, &kind.groups);
        let pods_deleted = object.pods == ObjectPods::None;
        let Some(findings) = object.found.valid(now, edition, pods_deleted) else { return false };
        // Of a hold it does not say when the object would have gone without.
        if findings.iter().any(|finding| finding.state == State::Held) {
            return false;
        }
        for finding in findings {
            if finding.flags.governs() {
                self.stuck += u64::from(is_stuck(&object.facts, now));
                *self.states.entry(finding.state).or_default() += 1;
                if finding.state == State::Due {
                    self.due_longest = self.due_longest.max(now.since(finding.goes));
                }
            }
            if finding.goes().is_some_and(|goes| goes <= now) {
                self.expect_from(finding, kind);
            }
        }
        true
    }

    fn expect_from(&mut self, finding: &Finding, kind: &Kind) {
        let registered = usize::try_from(finding.policy)
            .ok()
            .and_then(|number| kind.surveys.register().policies().get(number));
        if let Some(registered) = registered {
            *self.would_delete.entry(registered.uid.clone()).or_default() += 1;
        }
    }

    /// Counts an object for the policy that governs it.
    fn govern(&mut self, governed: &Governed<'_, '_>, plan: &Plan<'_>, now: Timestamp) {
        self.stuck += u64::from(is_stuck(governed.object, now));
        *self.states.entry(plan.state).or_default() += 1;
        let (since, longest) = match plan.state {
            State::Due => (plan.due.map(|due| due.at), &mut self.due_longest),
            State::Held => (plan.due_unheld, &mut self.held_longest),
            _ => return,
        };
        *longest = since.map_or(*longest, |since| now.since(since).max(*longest));
    }

    /// Counts an object for a policy that governs it, or would if it enforced.
    fn expect(&mut self, plan: &Plan<'_>, now: Timestamp) {
        let is_due = plan.due.is_some_and(|due| due.at <= now);
        if is_due && is_to_be_deleted(plan.state) {
            *self.would_delete.entry(plan.policy.uid.clone()).or_default() += 1;
        }
    }
}
