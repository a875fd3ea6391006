//! The rules of `docs/retention.md` that say when a Job is due, once more and for the judge alone (R20, R21, R24, R30 to R32).
//!
//! Nothing here is shared with the program. It is slow and plain: each question goes through all policies and all Jobs.

use std::{collections::BTreeMap, sync::Arc};

use super::objects::{Action, EXCLUDED, Job, Limits, Namespace, Owned, Policy, Rule, Wish};

/// How much later than the kind's own controller the program deletes by the own TTL, in seconds (R31).
const BACKSTOP: i64 = 60;

/// Which policy: its namespace and its name.
pub type PolicyId = (Option<usize>, u32);
/// Which Job: its namespace and its name.
pub type JobId = (usize, u32);

/// What there is, or what somebody knows of it.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The policies.
    pub policies: BTreeMap<PolicyId, Arc<Policy>>,
    /// The namespaces.
    pub namespaces: BTreeMap<usize, Namespace>,
    /// The Jobs, unfinished ones included.
    pub jobs: BTreeMap<JobId, Arc<Job>>,
}

/// The owners of Jobs: when each has finished.
pub type Owners = BTreeMap<u64, Option<i64>>;

/// What the rules say of a finished Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The policy that governs it.
    pub policy: PolicyId,
    /// When it is due, in seconds; `None`: never, as things are.
    pub due: Option<i64>,
    /// Whether it is due because enough newer ones are there.
    pub by_count: bool,
    /// The index of the rule that fits.
    pub rule: usize,
}

impl View {
    /// What the policies in Enforce say of a Job at `now`; `None`: none of them is about it.
    #[must_use]
    pub fn verdict(&self, job: &Job, owners: &Owners, now: i64) -> Option<Verdict> {
        let (policy, index, rule) = self.governing(job)?;
        let id = (policy.namespace, policy.name);
        let never = Verdict { policy: id, due: None, by_count: false, rule: index };
        let start = job.start()?;
        if job.terminating || self.is_in_doubt(job) {
            return Some(never);
        }
        let (value, by_rule, by_count) = self.value(policy, (index, rule), job, (start, now));
        let limits = self.limits(job);
        let backstop = if is_own(policy, job) { BACKSTOP } else { 0 };
        let (due, is_maximum) = bounded(value, limits, start, backstop);
        let due = due.and_then(|due| after_owner(policy, job, owners, (due, by_rule)));
        let due = due.map(|due| held(policy, job, limits, due));
        Some(Verdict { due, by_count: by_count && !is_maximum, ..never })
    }

    /// What is due at `now`, by which policy, and since when: Jobs and policies by UID.
    #[must_use]
    pub fn due(&self, owners: &Owners, now: i64) -> BTreeMap<u64, (u64, i64)> {
        let due = self.jobs.values().filter_map(|job| {
            let verdict = self.verdict(job, owners, now)?;
            let policy = self.policies.get(&verdict.policy)?;
            let due = verdict.due.filter(|due| *due <= now)?;
            Some((job.uid, (policy.uid, due)))
        });
        due.collect()
    }

    /// The policy that governs a Job, and its rule.
    fn governing(&self, job: &Job) -> Option<(&Policy, usize, Rule)> {
        let mut policies: Vec<&Policy> = self.policies.values().map(|policy| &**policy).collect();
        policies.retain(|policy| {
            policy.spec.enforces && self.selects(policy, job) && !policy.spec.unknown
        });
        policies.sort_by_key(|policy| {
            (policy.namespace.is_none(), -policy.spec.priority, policy.created, policy.name)
        });
        let (outcome, _) = job.end?;
        policies.into_iter().find_map(|policy| {
            let fits = |rule: &&Rule| rule.outcome.is_none_or(|wanted| wanted == outcome);
            let index = policy.spec.rules.iter().position(|rule| fits(&rule))?;
            let rule = *policy.spec.rules.get(index)?;
            (rule.action != Action::Defer).then_some((policy, index, rule))
        })
    }

    fn applies(&self, policy: &Policy, namespace: usize) -> bool {
        let Some(there) = self.namespaces.get(&namespace).filter(|there| !there.terminating) else {
            return false;
        };
        match policy.namespace {
            Some(own) => own == namespace,
            None => namespace != EXCLUDED && policy.spec.env.is_none_or(|env| env == there.env),
        }
    }

    fn selects(&self, policy: &Policy, job: &Job) -> bool {
        let fits = policy.spec.team.is_none() || policy.spec.team == job.team;
        fits && self.applies(policy, job.namespace)
    }

    /// Whether a policy may select it that is not understood (R5).
    fn is_in_doubt(&self, job: &Job) -> bool {
        let concerns = |policy: &Policy| policy.namespace.is_none_or(|own| own == job.namespace);
        self.policies.values().any(|policy| policy.spec.unknown && concerns(policy))
    }

    fn value(
        &self,
        policy: &Policy,
        (index, rule): (usize, Rule),
        job: &Job,
        (start, now): (i64, i64),
    ) -> (Option<i64>, bool, bool) {
        if let (Some(Wish::Seconds(seconds)), true) = (job.wish, policy.spec.annotation) {
            return (Some(start + seconds), false, false);
        }
        if let (Some(seconds), true) = (job.own_ttl, is_own(policy, job)) {
            return (Some(start + seconds), false, false);
        }
        match rule.action {
            Action::Ttl(seconds) => (Some(start + seconds), true, false),
            Action::Keep | Action::Defer => (None, true, false),
            Action::KeepLast { grouped: true, .. } if job.experiment.is_none() => {
                (None, true, false)
            }
            Action::KeepLast { count, minimum, maximum, .. } => {
                let newer = self.newer(policy, (index, rule), job, now);
                let last_needed =
                    usize::from(count).checked_sub(1).and_then(|last| newer.get(last));
                let dispensable = last_needed.map(|finished| (start + minimum).max(*finished));
                let too_old = maximum.map(|age| start + age);
                match (dispensable, too_old) {
                    (Some(by_count), too_old) if too_old.is_none_or(|old| by_count <= old) => {
                        (Some(by_count), true, true)
                    }
                    (_, too_old) => (too_old, true, false),
                }
            }
        }
    }

    /// From when on those of its group count that are newer and take places, the earliest first.
    fn newer(
        &self,
        policy: &Policy,
        (index, rule): (usize, Rule),
        job: &Job,
        now: i64,
    ) -> Vec<i64> {
        let rank = |job: &Job| Some((job.end?.1, job.created, job.uid));
        let counts_from = |other: &Job| {
            let (_, finished) = other.end?;
            let had_effect = maximum_hold(policy, self.limits(other)) > 0;
            let hold = other.hold.filter(|_| had_effect);
            Some(hold.map_or(finished, |end| end.max(finished)))
        };
        let mut newer: Vec<_> = self
            .members(policy, (index, rule), job, now)
            .filter(|other| rank(other) > rank(job))
            .filter_map(counts_from)
            .collect();
        newer.sort_unstable();
        newer
    }

    /// The Jobs that take places in the group of this one.
    fn members<'v>(
        &'v self,
        policy: &'v Policy,
        (index, rule): (usize, Rule),
        job: &'v Job,
        now: i64,
    ) -> impl Iterator<Item = &'v Job> {
        let grouped = matches!(rule.action, Action::KeepLast { grouped: true, .. });
        let there = self.jobs.range((job.namespace, 0)..=(job.namespace, u32::MAX));
        there.map(|(_, other)| &**other).filter(move |other| {
            let is_same = |(governing, found, _): (&Policy, usize, Rule)| {
                governing.uid == policy.uid && found == index
            };
            let in_group = !grouped || other.experiment == job.experiment;
            in_group
                && self.governing(other).is_some_and(is_same)
                && self.takes_place(policy, other, now)
        })
    }

    fn takes_place(&self, policy: &Policy, job: &Job, now: i64) -> bool {
        let maximum = maximum_hold(policy, self.limits(job));
        let is_wished = match wished_hold(policy, job) {
            None => false,
            Some(Hold::Until(end)) => now < end,
            Some(Hold::Unreadable) => true,
        };
        let is_skipped = job.owner.is_some() && policy.spec.owned == Owned::Skip;
        !(job.terminating || is_wished && maximum > 0 || is_skipped)
    }

    /// How many of the group of a Job would be left without these, and how many the rule keeps; `None`: no rule counts.
    #[must_use]
    pub fn left_without(&self, job: &Job, gone: &[u64], now: i64) -> Option<(usize, usize)> {
        let (policy, index, rule) = self.governing(job)?;
        let Action::KeepLast { count, .. } = rule.action else { return None };
        let members = self.members(policy, (index, rule), job, now);
        let left = members.filter(|other| !gone.contains(&other.uid)).count();
        Some((left, usize::from(count)))
    }

    fn limits(&self, job: &Job) -> Limits {
        let of = self.policies.values().filter(|policy| {
            policy.namespace.is_none()
                && policy.spec.enforces
                && !policy.spec.unknown
                && self.selects(policy, job)
        });
        let least = |one: Option<i64>, other: Option<i64>| one.into_iter().chain(other).min();
        of.fold(Limits::default(), |limits, policy| Limits {
            minimum: limits.minimum.max(policy.spec.limits.minimum),
            maximum: least(limits.maximum, policy.spec.limits.maximum),
            hold: least(limits.hold, policy.spec.limits.hold),
        })
    }
}

/// Whether the TTL of the kind itself counts.
fn is_own(policy: &Policy, job: &Job) -> bool {
    let has_wish = matches!(job.wish, Some(Wish::Seconds(_))) && policy.spec.annotation;
    job.own_ttl.is_some() && policy.spec.respects_own_ttl && !has_wish
}

/// Step 3 of R30, and whether it was the maximum that decided.
fn bounded(value: Option<i64>, limits: Limits, start: i64, backstop: i64) -> (Option<i64>, bool) {
    let earliest = start + limits.minimum.unwrap_or_default();
    let latest = limits.maximum.map(|maximum| (start + maximum).max(earliest));
    let value = value.map(|value| value.max(earliest) + backstop);
    match (value, latest) {
        (Some(value), Some(latest)) if value > latest => (Some(latest), true),
        (None, Some(latest)) => (Some(latest), true),
        (value, _) => (value, false),
    }
}

/// Step 4: a rule waits for the owner.
fn after_owner(
    policy: &Policy,
    job: &Job,
    owners: &Owners,
    (due, by_rule): (i64, bool),
) -> Option<i64> {
    let (Some(owner), true) = (job.owner, by_rule) else { return Some(due) };
    match (policy.spec.owned, owners.get(&owner)) {
        (Owned::Skip, _) | (Owned::AfterOwner, Some(None)) => None,
        (Owned::AfterOwner, Some(Some(finished))) => Some(due.max(*finished)),
        (Owned::AfterOwner, None) | (Owned::Any, _) => Some(due),
    }
}

enum Hold {
    Until(i64),
    Unreadable,
}

fn wished_hold(policy: &Policy, job: &Job) -> Option<Hold> {
    if job.wish == Some(Wish::Unreadable) && policy.spec.annotation {
        return Some(Hold::Unreadable);
    }
    job.hold.map(Hold::Until)
}

fn maximum_hold(policy: &Policy, limits: Limits) -> i64 {
    limits.hold.map_or(policy.spec.hold, |hold| hold.min(policy.spec.hold))
}

/// Step 5.
fn held(policy: &Policy, job: &Job, limits: Limits, due: i64) -> i64 {
    let latest = due + maximum_hold(policy, limits);
    match wished_hold(policy, job) {
        None => due,
        Some(Hold::Until(end)) => end.min(latest).max(due),
        Some(Hold::Unreadable) => latest,
    }
}
