//! What invariants ask of objects and policies.

use std::collections::BTreeMap;

use trainjob_api::time::Timestamp;

use crate::{
    history::{Object, State},
    target::{Matching, Outcome, Policy, Rule, Target},
};

impl Rule {
    /// Whether it matches an object that has ended like this.
    pub(super) fn matches(&self, target: &Target, outcome: Outcome) -> bool {
        let Matching { outcomes, labels } = &self.matching;
        (outcomes.is_empty() || outcomes.contains(&outcome)) && has(target, labels)
    }
}

/// Whether an object has all these labels.
pub(super) fn has(target: &Target, labels: &BTreeMap<String, String>) -> bool {
    labels.iter().all(|(key, value)| target.labels.get(key) == Some(value))
}

impl Object {
    /// What it says as an object that policies are about, if it is one.
    pub(super) fn target(&self) -> Option<&Target> {
        match &self.state {
            State::Target(target) => Some(target),
            _ => None,
        }
    }

    /// What it says as a policy, if it is one.
    pub(super) fn policy(&self) -> Option<&Policy> {
        match &self.state {
            State::Policy(policy) => Some(policy),
            _ => None,
        }
    }

    /// From when on it is old: its end, or its creation if that was later (R1, R12).
    pub(super) fn start(&self) -> Option<Timestamp> {
        Some(self.target()?.end?.at?.max(self.created))
    }
}
