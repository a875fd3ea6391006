//! What policies said of an object at one instant.

use std::cmp::Reverse;

use trainjob_api::time::Timestamp;

use super::{objects::has, terms::Terms};
use crate::{
    history::{Millis, Object, State},
    index::{Index, Life},
    target::{Action, Delete, Hold, Outcome, Owned, Policy, Rule, Target, Trip, Ttl},
};

/// How long the engine waits for the kind's own controller, in seconds (R31).
const BACKSTOP: i64 = 60;

/// Everything that was stored at one instant.
#[derive(Clone, Copy)]
pub(super) struct Picture<'r, 'a> {
    pub(super) index: &'r Index<'a>,
    pub(super) deciders: &'r Deciders<'r, 'a>,
    pub(super) terms: &'r Terms,
    pub(super) at: Millis,
}

/// What decides about objects; there are few of it.
pub(super) struct Deciders<'r, 'a> {
    policies: Vec<&'r Life<'a>>,
    namespaces: Vec<&'r Life<'a>>,
}

impl<'r, 'a> Deciders<'r, 'a> {
    /// Those of a history.
    pub(super) fn of(index: &'r Index<'a>) -> Self {
        let those = |is_it: fn(&Object) -> bool| {
            index.lives.iter().filter(|life| is_it(&life.first().object)).collect()
        };
        Self {
            policies: those(|it| it.policy().is_some()),
            namespaces: those(|it| matches!(it.state, State::Namespace(_))),
        }
    }
}

/// What policies say of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may be deleted from this instant on.
    Due(Timestamp),
    /// The owner that controls it may be deleted instead from this instant on (R25).
    OwnerDue(Timestamp),
    /// It is never deleted, for this reason.
    Kept(&'static str),
    /// R30 exempts it, for this reason.
    Exempt(&'static str),
    /// No policy that enforces governs it.
    Ungoverned,
    /// Its policy has tripped there.
    Tripped,
}

/// The policy that governs an object, and its rule.
pub(super) struct Governing<'a> {
    pub(super) uid: &'a str,
    pub(super) policy: &'a Policy,
    pub(super) rule: &'a Rule,
}

impl<'a> Picture<'_, 'a> {
    /// What is said of this version of an object.
    pub(super) fn verdict(&self, object: &Object) -> Verdict {
        let Some(target) = object.target() else { return Verdict::Exempt("is no target") };
        if let Some(reason) = self.exemption(object, target) {
            return Verdict::Exempt(reason);
        }
        let Some(governing) = self.governing(object, target) else { return Verdict::Ungoverned };
        if has_tripped(governing.policy, object) {
            return Verdict::Tripped;
        }
        let due = self.due(object, target, &governing);
        match governing.rule.delete {
            Delete::Object => due.map_or_else(Verdict::Kept, Verdict::Due),
            Delete::Owner => due.map_or_else(Verdict::Kept, Verdict::OwnerDue),
        }
    }

    fn exemption(&self, object: &Object, target: &Target) -> Option<&'static str> {
        let namespace = self.namespace(&object.namespace);
        let is_ending = namespace.is_some_and(|it| it.deleting.is_some());
        [
            (target.end.is_none(), "is not finished"),
            (object.deleting.is_some(), "is terminating"),
            (target.is_copy, "is a copy of MultiKueue"),
            (is_ending, "is in a namespace that is terminating"),
        ]
        .into_iter()
        .find_map(|(holds, reason)| holds.then_some(reason))
    }

    fn namespace(&self, name: &str) -> Option<&'a Object> {
        let there = self.deciders.namespaces.iter().filter_map(|life| life.at(self.at));
        there.map(|change| &change.object).find(|it| it.name == name)
    }

    /// The policies that enforce and select an object, in the order in which they are asked (R20).
    fn selecting(&self, object: &Object, target: &Target) -> Vec<(&'a Object, &'a Policy)> {
        let there = self.deciders.policies.iter().filter_map(|life| life.at(self.at));
        let policies = there.filter_map(|change| Some((&change.object, change.object.policy()?)));
        let mut selecting: Vec<_> = policies
            .filter(|(it, policy)| {
                policy.enforces
                    && policy.resource == target.resource
                    && self.includes(it, policy, &object.namespace)
                    && has(target, &policy.selector)
            })
            .collect();
        selecting.sort_by_key(|(it, policy)| {
            (policy.is_of_cluster, Reverse(policy.priority), it.created, it.name.clone())
        });
        selecting
    }

    fn includes(&self, it: &Object, policy: &Policy, namespace: &str) -> bool {
        let is_named = match (&policy.namespaces, policy.is_of_cluster) {
            (_, false) => return it.namespace == namespace,
            (Some(named), true) => named.iter().any(|name| name == namespace),
            (None, true) => !self.terms.excluded.contains(namespace),
        };
        is_named && (policy.namespace_labels.is_empty() || self.is_labelled(namespace, policy))
    }

    fn is_labelled(&self, namespace: &str, policy: &Policy) -> bool {
        let there = self.namespace(namespace).map(|it| &it.state);
        let Some(State::Namespace(labels)) = there else { return false };
        policy.namespace_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    /// The policy that governs an object (R20).
    pub(super) fn governing(&self, object: &Object, target: &Target) -> Option<Governing<'a>> {
        let outcome = target.end?.outcome;
        self.selecting(object, target).into_iter().find_map(|(it, policy)| {
            let rule = policy.rules.iter().find(|rule| rule.matches(target, outcome))?;
            let governs = rule.action != Action::Defer;
            governs.then_some(Governing { uid: &it.uid, policy, rule })
        })
    }

    /// When an object is due (R30, steps 2 to 5); why it is kept, if it is.
    fn due(
        &self,
        object: &Object,
        target: &Target,
        governing: &Governing<'a>,
    ) -> Result<Timestamp, &'static str> {
        let policy = governing.policy;
        let start = object.start().ok_or("has no time of its end")?;
        let limits: Vec<_> =
            self.selecting(object, target).iter().map(|(_, policy)| policy.limits).collect();
        let minimum = limits.iter().filter_map(|limits| limits.minimum).max().unwrap_or(0);
        let maximum = limits.iter().filter_map(|limits| limits.maximum).min();
        let bounded = |value: i64| maximum.map_or(value, |most| value.min(most)).max(minimum);

        let takes_owner = governing.rule.delete == Delete::Owner;
        let annotation = target.annotation.filter(|_| policy.allows_annotations);
        // It says nothing about the owner (R25).
        let own_ttl = target.own_ttl.filter(|_| policy.respects_own_ttl && !takes_owner);
        let by_rule = annotation.is_none_or(|it| it == Ttl::Unreadable) && own_ttl.is_none();
        let free = self.released_by_owner(object, governing, by_rule)?;
        let due = match (annotation, own_ttl) {
            (Some(Ttl::Seconds(seconds)), _) => start.plus(bounded(seconds)),
            (_, Some(seconds)) => {
                let late = bounded(seconds) + BACKSTOP;
                start.plus(maximum.map_or(late, |most| late.min(most.max(minimum))))
            }
            (_, None) => self.due_by_rule(object, governing, (start, maximum), bounded)?,
        };
        let due = due.max(free);
        let reach = limits.iter().filter_map(|limits| limits.maximum_hold);
        let longest = due.plus(reach.fold(policy.maximum_hold, i64::min));
        let held = |hold: Option<Hold>| match hold {
            Some(Hold::Unreadable) => longest,
            Some(Hold::Until(until)) => until.min(longest).max(due),
            None => due,
        };
        let of_owner = self.owner(object).filter(|_| takes_owner);
        let of_owner = of_owner.and_then(|owner| owner.target()?.hold);
        let is_unreadable = annotation == Some(Ttl::Unreadable);
        Ok(if is_unreadable { longest } else { held(target.hold).max(held(of_owner)) })
    }

    fn due_by_rule(
        &self,
        object: &Object,
        governing: &Governing<'a>,
        (start, maximum): (Timestamp, Option<i64>),
        bounded: impl Fn(i64) -> i64,
    ) -> Result<Timestamp, &'static str> {
        let never = |reason| maximum.map(|most| start.plus(bounded(most))).ok_or(reason);
        match &governing.rule.action {
            Action::Ttl(seconds) => Ok(start.plus(bounded(*seconds))),
            Action::Keep | Action::Defer => never("is to be kept"),
            Action::KeepLast { count, group_by, minimum_age, maximum_age } => {
                let aged = maximum_age.map(|age| start.plus(age));
                let pushed_out = self.pushed_out(object, governing, group_by, *count);
                let pushed_out = pushed_out.map(|at| at.max(start.plus(*minimum_age)));
                match (pushed_out, aged) {
                    (Some(one), Some(other)) => Ok(one.min(other)),
                    (one, other) => one.or(other).map_or_else(|| never("is one of the last"), Ok),
                }
            }
        }
    }

    /// When as many newer objects of its group had finished as are kept (R21); `None` if fewer have.
    fn pushed_out(
        &self,
        object: &Object,
        governing: &Governing<'a>,
        group_by: &[String],
        count: usize,
    ) -> Option<Timestamp> {
        let group = group(object.target()?, group_by)?;
        let own = rank(object)?;
        let is_in_group = |other: &Object, target: &Target| {
            other.namespace == object.namespace
                && other.deleting.is_none()
                && target.hold.is_none()
                && self::group(target, group_by).as_ref() == Some(&group)
        };
        let is_governed = |other: &Object, target: &Target| {
            let same = |it: Governing<'_>| it.uid == governing.uid && it.rule == governing.rule;
            self.governing(other, target).is_some_and(same)
        };
        let there = self.index.lives.iter().filter_map(|life| life.at(self.at));
        let newer = there.map(|change| &change.object).filter(|other| {
            rank(other) > Some(own)
                && other.target().is_some_and(|it| is_in_group(other, it) && is_governed(other, it))
        });
        let mut newer: Vec<_> = newer.filter_map(rank).collect();
        // Seen from this object, the nearest first.
        newer.sort_unstable();
        newer.get(count.checked_sub(1)?).map(|(finished, ..)| *finished)
    }

    /// From when on its owner lets an object go, or goes instead (R23 to R26).
    fn released_by_owner(
        &self,
        object: &Object,
        governing: &Governing<'a>,
        by_rule: bool,
    ) -> Result<Timestamp, &'static str> {
        let mode = governing.policy.owned;
        let is_workload = object.state.plural() == "workloads";
        let outcome = object.target().and_then(|it| it.end).map(|end| end.outcome);
        // The job of such a Workload may be running, and without it Kueue would make another one (R26).
        let waits = is_workload && outcome == Some(Outcome::Other);
        if governing.rule.delete == Delete::Owner {
            let owner = self.owner(object).ok_or("has no owner that could go instead")?;
            let is_kept = owner.owner.is_some() && mode != Owned::Any;
            return [
                (owner.deleting.is_some(), "has an owner that is terminating"),
                (is_kept, "has an owner that belongs to somebody"),
                (waits && owner.start().is_none(), "has an owner that may be running"),
            ]
            .into_iter()
            .find_map(|(holds, reason)| holds.then_some(Err(reason)))
            .unwrap_or(Ok(Timestamp(0)));
        }
        if is_workload && outcome == Some(Outcome::Deactivated) {
            return Err("goes only with its owner");
        }
        match (&object.owner, mode) {
            (Some(_), Owned::Skip) if by_rule => Err("belongs to somebody"),
            (Some(_), Owned::AfterOwner) if by_rule => self.end_of_owner(object),
            (Some(_), Owned::Any | Owned::AfterOwner | Owned::Skip) if waits => {
                self.end_of_owner(object)
            }
            (None, _) | (Some(_), Owned::Any | Owned::AfterOwner | Owned::Skip) => Ok(Timestamp(0)),
        }
    }

    /// When the owner of an object ended, or long ago if it is gone.
    fn end_of_owner(&self, object: &Object) -> Result<Timestamp, &'static str> {
        let Some(owner) = self.owner(object) else { return Ok(Timestamp(0)) };
        owner.start().ok_or("belongs to somebody who has not finished")
    }

    /// The owner that controls an object, if it is there.
    fn owner(&self, object: &Object) -> Option<&'a Object> {
        let life = self.index.life(object.owner.as_deref()?)?;
        life.at(self.at).map(|change| &change.object)
    }
}

/// By what the newest is found.
fn rank(object: &Object) -> Option<(Timestamp, Timestamp, &str)> {
    Some((object.target()?.end?.at?, object.created, &object.uid))
}

/// The values of the labels that make a group; `None` if one is missing.
fn group<'t>(target: &'t Target, group_by: &[String]) -> Option<Vec<&'t String>> {
    group_by.iter().map(|key| target.labels.get(key)).collect()
}

fn has_tripped(policy: &Policy, object: &Object) -> bool {
    match &policy.trip {
        None => false,
        Some(Trip::Everywhere) => true,
        Some(Trip::Namespaces(names)) => names.contains(&object.namespace),
    }
}
