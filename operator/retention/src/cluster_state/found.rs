//! What policies find of an object, remembered for as long as it stays so (`docs/retention.md`, R65).
//!
//! To count a hundred thousand objects by planning for each takes a third of a second. Most have not changed since they were
//! counted last, so each remembers what was found of it, and until when that holds.

use std::sync::Arc;

use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    plan::{Delay, Due, HoldEnd, OverrideProblem, Plan, State},
    policies::Governed,
    uid::Uid,
};

/// What one policy finds of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finding {
    /// When the object goes, as things are; the end of time, if it does not.
    pub(super) goes: Timestamp,
    /// The policy, by its number in the [register](Register).
    pub(super) policy: u32,
    /// The rule, by its number there.
    pub(super) rule: u16,
    pub(super) state: State,
    /// What else there is to say of it.
    pub(super) flags: Flags,
}

/// Whether a policy governs an object, and what its condition `Ready` has to say of it, in one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flags(u8);

/// What all policies find of an object; mostly that is one.
#[derive(Debug, Default)]
enum Findings {
    #[default]
    None,
    One(Finding),
    #[expect(clippy::box_collection, reason = "so this takes no more room than one finding")]
    Several(Box<Vec<Finding>>),
}

/// What was found of an object when it was planned for last.
#[derive(Debug)]
pub(super) struct Found {
    findings: Findings,
    /// From when on another plan may come of it.
    until: Timestamp,
    /// In which edition of what it depends on.
    edition: u32,
    /// Whether its Pods were known to be deleted.
    pods_deleted: bool,
}

impl Default for Found {
    /// Nothing was found yet.
    fn default() -> Self {
        let findings = Findings::default();
        Self { findings, until: NOT_PLANNED, edition: 0, pods_deleted: false }
    }
}

const NOT_PLANNED: Timestamp = Timestamp(i64::MIN);
const NEVER: Timestamp = Timestamp(i64::MAX);

impl Finding {
    pub(super) fn of(
        (governed, governs): (&Governed<'_, '_>, bool),
        plan: &Plan<'_>,
        register: &mut Register,
    ) -> Self {
        let goes = plan.due.filter(|_| is_to_be_deleted(plan.state)).map_or(NEVER, |due| due.at);
        let (policy, rule) = register.number(&plan.policy.uid, &plan.rule.name);
        Self { goes, policy, rule, state: plan.state, flags: Flags::of((governed, governs), plan) }
    }

    /// When the object goes; `None`: it does not, as things are.
    pub(super) fn goes(&self) -> Option<Timestamp> {
        Some(self.goes).filter(|goes| *goes < NEVER)
    }
}

impl Flags {
    const LIMITS_CROSS: u8 = 1;
    const UNREADABLE: u8 = 2;
    const GOVERNS: u8 = 4;

    fn of((governed, governs): (&Governed<'_, '_>, bool), plan: &Plan<'_>) -> Self {
        let unreadable = Some(Delay::Hold(HoldEnd::Unreadable));
        let is_unreadable = plan.override_problem == Some(OverrideProblem::Unreadable)
            || plan.due.is_some_and(|Due { delay, .. }| delay == unreadable);
        let flag = |is_so, flag| if is_so { flag } else { 0 };
        Self(
            flag(governed.bounds.cross(), Self::LIMITS_CROSS)
                | flag(is_unreadable, Self::UNREADABLE)
                | flag(governs, Self::GOVERNS),
        )
    }

    /// Whether the policy governs the object, and does not only audit it.
    pub(super) const fn governs(self) -> bool {
        self.0 & Self::GOVERNS != 0
    }

    /// Whether the bounds cross.
    pub(super) const fn limits_cross(self) -> bool {
        self.0 & Self::LIMITS_CROSS != 0
    }

    /// Whether it asks for a hold or a TTL in words that cannot be read.
    pub(super) const fn is_unreadable(self) -> bool {
        self.0 & Self::UNREADABLE != 0
    }
}

impl Found {
    /// All that was found, which holds until `next`.
    pub(super) fn new(
        mut findings: Vec<Finding>,
        next: Option<Timestamp>,
        edition: u32,
        pods_deleted: bool,
    ) -> Self {
        let findings = match (findings.pop(), findings.is_empty()) {
            (None, _) => Findings::None,
            (Some(finding), true) => Findings::One(finding),
            (Some(finding), false) => {
                findings.push(finding);
                findings.shrink_to_fit();
                Findings::Several(Box::new(findings))
            }
        };
        Self { findings, until: next.unwrap_or(NEVER), edition, pods_deleted }
    }

    /// What was found, if that still holds.
    pub(super) fn valid(
        &self,
        now: Timestamp,
        edition: u32,
        pods_deleted: bool,
    ) -> Option<&[Finding]> {
        let holds =
            now < self.until && self.edition == edition && self.pods_deleted == pods_deleted;
        holds.then_some(match &self.findings {
            Findings::None => &[],
            Findings::One(finding) => std::slice::from_ref(finding),
            Findings::Several(findings) => findings,
        })
    }

    /// From when on another plan may come of it, if that is known, and not never.
    pub(super) fn until(&self) -> Option<Timestamp> {
        Some(self.until).filter(|until| NOT_PLANNED < *until && *until < NEVER)
    }
}

/// The policies of a kind and their rules by numbers, which take less room than names.
#[derive(Debug, Default)]
pub(super) struct Register {
    policies: Vec<Registered>,
}

/// A policy in the register.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) uid: Uid,
    pub(super) rules: Vec<Arc<str>>,
}

impl Register {
    /// How many policies it has.
    pub(super) const fn len(&self) -> usize {
        self.policies.len()
    }

    /// All policies, by their numbers.
    pub(super) fn policies(&self) -> &[Registered] {
        &self.policies
    }

    fn number(&mut self, policy: &Uid, rule: &Arc<str>) -> (u32, u16) {
        let known = self.policies.iter().position(|known| known.uid == *policy);
        let number = known.unwrap_or_else(|| {
            self.policies.push(Registered { uid: policy.clone(), rules: Vec::new() });
            self.policies.len() - 1
        });
        let rule = self.policies.get_mut(number).map_or(0, |known| known.number(rule));
        (number.try_into().unwrap_or(u32::MAX), rule)
    }
}

impl Registered {
    fn number(&mut self, rule: &Arc<str>) -> u16 {
        let known = self.rules.iter().position(|known| known == rule);
        let number = known.unwrap_or_else(|| {
            self.rules.push(Arc::clone(rule));
            self.rules.len() - 1
        });
        number.try_into().unwrap_or(u16::MAX)
    }
}

/// Whether an object of this state goes at its time, as things are.
pub(super) const fn is_to_be_deleted(state: State) -> bool {
    match state {
        State::Pending | State::Due | State::Held | State::NativeTtl => true,
        State::Kept
        | State::Owned
        | State::Guarded
        | State::NeedsOwner
        | State::Ungrouped
        | State::NoFinishTime
        | State::Terminating => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_takes_little_room() {
        assert!(size_of::<Findings>() <= 16, "{}", size_of::<Findings>());
        assert!(size_of::<Found>() <= 32, "{}", size_of::<Found>());
    }

    #[test]
    fn what_was_found_holds_until_something_it_depends_on_changes() {
        let finding = |policy| Finding {
            goes: Timestamp(70),
            policy,
            rule: 0,
            state: State::Pending,
            flags: Flags::default(),
        };
        for count in 0..3 {
            let findings: Vec<_> = (0..count).map(finding).collect();
            let found = Found::new(findings.clone(), Some(Timestamp(70)), 3, false);
            assert_eq!(found.valid(Timestamp(69), 3, false), Some(&*findings));
            assert_eq!(found.valid(Timestamp(70), 3, false), None, "its time has come");
            assert_eq!(found.valid(Timestamp(69), 4, false), None, "an edit");
            assert_eq!(found.valid(Timestamp(69), 3, true), None, "its Pods are gone");
        }
        assert_eq!(Found::default().valid(Timestamp(0), 0, false), None);
        assert_eq!(Found::new(Vec::new(), None, 0, false).until(), None);
    }

    #[test]
    fn policies_and_rules_have_numbers() {
        let mut register = Register::default();
        let mut number = |policy, rule: &str| register.number(&Uid::from(policy), &rule.into());
        assert_eq!(number("p", "a"), (0, 0));
        assert_eq!(number("p", "b"), (0, 1));
        assert_eq!(number("q", "b"), (1, 0));
        assert_eq!(number("p", "a"), (0, 0));
    }
}
