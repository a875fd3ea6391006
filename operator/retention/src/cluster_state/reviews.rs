//! What is asked about rights, and what follows from the answers (`docs/retention.md`, R34 and R51).

use std::{collections::BTreeMap, time::Duration};

use trainjob_api::lifecycle::v1alpha1::status::MissingRule;
use trainjob_core::Now;
use trainjob_retention_core::uid::Uid;

use super::{
    ClusterState, Effects, audit,
    rights::{Resource, Right, RightChange, Verb},
};
use crate::key::{Key, TargetId};

/// The most rules that a status has; see the schema of `status.missingRules`.
const MOST_RULES: usize = 16;

impl ClusterState {
    /// The rights that are to be asked about now. Times are of a clock that nobody sets.
    #[must_use]
    pub fn rights_to_ask(&self, now: Duration) -> Vec<Right> {
        self.rights.to_ask(now).cloned().collect()
    }

    /// Takes in whether the engine has a right; `None`: there was no answer. What waited for a right that is given again
    /// is queued.
    pub fn right_answered(
        &mut self,
        right: &Right,
        answer: Option<bool>,
        now: Duration,
    ) -> (RightChange, Effects) {
        let change = self.rights.answered(right, answer, now);
        if change != RightChange::Given {
            return (change, Effects::default());
        }
        for target in self.rights.targets(right) {
            if let Some(kind) =
                self.kinds.get_mut(target.0).filter(|_| *right == Right::of_pods(Verb::List))
            {
                kind.list_pods_again();
            }
            self.queue_again(target);
        }
        (change, Effects { evaluate: true, ..Effects::default() })
    }

    /// The deletion of an object, or of its Pods, was refused with 403. If a right is missing, it is one of these.
    pub fn refused(&mut self, key: &Key, rights: Vec<Right>, now: Duration) {
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return };
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        let Some(object) = kind.objects.get(&key.object) else { return };
        if let Some(governed) = policies.governing(&object.facts) {
            self.rights.refused(&governed.policy.uid, rights, now);
        }
    }

    /// The question whether an object is released was refused with 403. If a right is missing, it is one of these.
    pub fn release_refused(&mut self, key: &Key, rights: &[Right], now: Now, monotonic: Duration) {
        for policy in self.asking(key, now, monotonic) {
            self.rights.refused(&policy, rights.to_vec(), monotonic);
        }
    }

    /// The question whether the owner of an object has ended was refused with 403. If a right is missing, it is one of these.
    pub fn owner_refused(&mut self, key: &Key, rights: &[Right], now: Now, monotonic: Duration) {
        for policy in self.asking(key, now, monotonic) {
            self.rights.owner_refused(&policy, rights, monotonic);
        }
    }

    /// The policies that would ask about an object now.
    fn asking(&mut self, key: &Key, now: Now, monotonic: Duration) -> Vec<Uid> {
        let Some(kind) = self.kinds.get_mut(key.target.0) else { return Vec::new() };
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        let Some(object) = kind.objects.get(&key.object) else { return Vec::new() };
        let (time, answers) = (now.stamp(), object.audited_answers(monotonic));
        let audited = audit::plans(&policies, object, answers, &kind.groups, time);
        let governed = policies.governing(&object.facts).into_iter();
        let governing = governed.map(|it| (it, it.plan(&answers, &kind.groups, time)));
        let asking = governing.chain(audited).filter(|(_, plan)| audit::asks(plan));
        asking.map(|(governed, _)| governed.policy.uid.clone()).collect()
    }

    /// The watch of a target kind was refused with 403.
    pub fn watch_refused(&mut self, target: TargetId, now: Duration) {
        let Some(kind) = self.kinds.get(target.0) else { return };
        for verb in [Verb::List, Verb::Watch] {
            self.rights.doubt(&Right { resource: kind.resource.clone(), verb }, now);
        }
    }

    /// The list of all Pods was refused with 403. Whether that is for want of the right to it; else it has to be listed again.
    pub fn pods_list_refused(&mut self, now: Duration) -> bool {
        let right = Right::of_pods(Verb::List);
        self.rights.doubt(&right, now);
        self.rights.is_missing(&right)
    }

    /// Whether a policy deletes nothing because a right is missing.
    #[must_use]
    pub fn is_paused(&self, policy: &Uid) -> bool {
        self.rights.is_paused(policy)
    }

    /// The RBAC rules that a policy lacks, one for each resource.
    #[must_use]
    pub fn missing_rules(&self, policy: &Uid) -> Vec<MissingRule> {
        let mut rules: BTreeMap<&Resource, Vec<String>> = BTreeMap::new();
        for Right { resource, verb } in self.rights.missing(policy) {
            rules.entry(resource).or_default().push(verb.as_str().to_owned());
        }
        let rule = |(resource, verbs): (&Resource, Vec<String>)| MissingRule {
            api_groups: vec![resource.group.to_string()],
            resources: vec![resource.name.to_string()],
            verbs,
        };
        rules.into_iter().take(MOST_RULES).map(rule).collect()
    }
}
