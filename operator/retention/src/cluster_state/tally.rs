//! What a policy finds, counted for its status (`docs/retention.md`, 7).

use std::{collections::BinaryHeap, mem, sync::Arc};

use trainjob_api::{
    lifecycle::v1alpha1::status::{Counts, NEXT, NextDeletion, WouldDelete},
    time::Timestamp,
};
use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::{
    facts::Facts,
    plan::{Delay, Due, Plan, STUCK_AFTER, Source, State},
    policies::Governed,
    policy::{Delete, RuleAction},
    uid::Uid,
};

use super::{
    found::{Finding, Register},
    surveys::Basis,
};
use crate::key::Key;

const HOUR: i64 = 3_600;

/// What the policies of a kind find.
#[derive(Debug, Default)]
pub struct Survey {
    /// By the numbers of policies in the register of the kind.
    tallies: Vec<(Uid, Tally)>,
    pub(super) after: Option<ObjectKey>,
    /// Of which register the numbers are.
    pub(super) register: u32,
    /// How many objects were counted.
    pub(super) counted: usize,
    /// What has to be looked at soon, and when.
    pub(super) soon: Vec<(Key, Timestamp)>,
    /// What it was counted of; `None` if that changed meanwhile.
    pub(super) basis: Option<Basis>,
    /// When it began, and from when on another plan may come of some object.
    pub(super) holds: Option<(Timestamp, Timestamp)>,
}

/// How it is with a target kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindState {
    /// The configuration does not name it.
    NotATarget,
    /// It is not known completely yet, or not evaluated.
    Syncing,
    /// All is known. So many objects could not be read.
    Known {
        /// How many objects could not be read.
        skipped: u64,
    },
}

impl Survey {
    /// What a policy finds.
    #[must_use]
    pub fn tally(&self, policy: &Uid) -> Option<&Tally> {
        self.tallies.iter().find(|(uid, _)| uid == policy).map(|(_, tally)| tally)
    }

    /// What has to be looked at soon, and when. Timers are armed for that alone: most objects wait for days.
    pub fn take_soon(&mut self) -> Vec<(Key, Timestamp)> {
        mem::take(&mut self.soon)
    }

    /// One that begins with this register.
    pub(super) fn begin(register: u32) -> Self {
        Self { register, ..Self::default() }
    }

    /// The tally of a policy.
    pub(super) fn of(&mut self, policy: u32, register: &Register) -> Option<&mut Tally> {
        for registered in register.policies().iter().skip(self.tallies.len()) {
            self.tallies.push((registered.uid.clone(), Tally::default()));
        }
        let index = usize::try_from(policy).ok()?;
        let rules = &register.policies().get(index)?.rules;
        let (_, tally) = self.tallies.get_mut(index)?;
        for rule in rules.iter().skip(tally.rules.len()) {
            tally.rules.push((Arc::clone(rule), 0, 0));
        }
        Some(tally)
    }
}

/// What a policy finds.
#[derive(Debug, Default)]
pub struct Tally {
    /// Finished objects by state.
    pub counts: Counts,
    /// How many objects each rule matches, and how many of them are due.
    rules: Vec<(Arc<str>, u64, u64)>,
    /// How many would be deleted until when.
    pub would_delete: WouldDelete,
    /// How many objects have been terminating for more than ten minutes.
    pub stuck: u64,
    /// Whether the bounds cross for some object.
    pub limits_cross: bool,
    /// The objects that ask for a hold or a TTL in words that cannot be read, if there are any.
    pub unreadable: Option<Unreadable>,
    /// The earliest deletions, the last of them first.
    next: BinaryHeap<(Timestamp, Earliest)>,
}

/// Objects that ask for a hold or a TTL in words that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub first: ObjectKey,
}

/// A deletion to come.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Earliest {
    namespace: Arc<str>,
    name: Arc<str>,
    uid: String,
    rule: Arc<str>,
    source: &'static str,
    action: &'static str,
    native_at: Option<Timestamp>,
}

impl Tally {
    /// Counts an object that the policy governs.
    pub(super) fn count(
        &mut self,
        finding: &Finding,
        key: &ObjectKey,
        object: &Facts,
        now: Timestamp,
    ) {
        self.counts.finished += 1;
        if let Some(count) = of_state(&mut self.counts, finding.state) {
            *count += 1;
        }
        self.stuck += u64::from(is_stuck(object, now));
        self.limits_cross |= finding.flags.limits_cross();
        if finding.flags.is_unreadable() {
            self.count_unreadable(key);
        }
        if let Some((_, matched, due)) = self.rules.get_mut(usize::from(finding.rule)) {
            *matched += 1;
            *due += u64::from(finding.state == State::Due);
        }
        if let Some(goes) = finding.goes() {
            let within = |seconds: i64| u64::from(goes <= now.plus(seconds));
            self.would_delete.now += within(0);
            self.would_delete.hour += within(HOUR);
            self.would_delete.day += within(24 * HOUR);
            self.would_delete.week += within(7 * 24 * HOUR);
        }
    }

    fn count_unreadable(&mut self, key: &ObjectKey) {
        let known = self.unreadable.take();
        let count = known.as_ref().map_or(0, |known| known.count).saturating_add(1);
        // The first by name, so that a status stays as it is as long as nothing changes.
        let first = known.into_iter().map(|known| known.first).chain([key.clone()]).min();
        self.unreadable = Some(Unreadable { count, first: first.unwrap_or_else(|| key.clone()) });
    }

    /// Whether an object is among the earliest to go, as far as is known.
    pub(super) fn is_early(&self, finding: &Finding) -> bool {
        finding.goes().is_some_and(|goes| {
            self.next.len() < NEXT || self.next.peek().is_none_or(|(latest, _)| goes < *latest)
        })
    }

    /// Notes an object if it is among the earliest to go.
    pub(super) fn expect(
        &mut self,
        key: &ObjectKey,
        governed: &Governed<'_, '_>,
        plan: &Plan<'_>,
        finding: &Finding,
    ) {
        if let Some(due) = plan.due.filter(|_| self.is_early(finding)) {
            self.next.push((due.at, earliest(key, governed.object, plan, due)));
            if self.next.len() > NEXT {
                self.next.pop();
            }
        }
    }

    /// How many objects a rule matches, and how many of them are due.
    #[must_use]
    pub fn rule(&self, name: &str) -> (u64, u64) {
        let known = self.rules.iter().find(|(known, ..)| **known == *name);
        known.map_or((0, 0), |(_, matched, due)| (*matched, *due))
    }

    /// The earliest deletions, the first first.
    #[must_use]
    pub fn next(&self) -> Vec<NextDeletion> {
        let mut next: Vec<_> = self.next.iter().collect();
        next.sort_unstable();
        let written = |(at, earliest): &(Timestamp, Earliest)| NextDeletion {
            namespace: earliest.namespace.to_string(),
            name: earliest.name.to_string(),
            uid: earliest.uid.clone(),
            rule: earliest.rule.to_string(),
            source: earliest.source.to_owned(),
            action: earliest.action.to_owned(),
            at: Some((*at).into()),
            native_at: earliest.native_at.map(Into::into),
        };
        next.into_iter().map(written).collect()
    }
}

fn earliest(key: &ObjectKey, object: &Facts, plan: &Plan<'_>, due: Due) -> Earliest {
    Earliest {
        namespace: Arc::clone(&key.namespace),
        name: (*key.name).into(),
        uid: object.uid.to_string(),
        rule: Arc::clone(&plan.rule.name),
        source: source_name(due),
        action: match &plan.rule.action {
            RuleAction::Decide(decide) if decide.delete() == Delete::Owner => "Owner",
            RuleAction::Decide(_) | RuleAction::Defer => "Object",
        },
        native_at: plan.native,
    }
}

/// Where an instant is from, as a status says it.
#[must_use]
pub const fn source_name(due: Due) -> &'static str {
    match (due.delay, due.source) {
        (Some(Delay::Hold(_)), _) => "Hold",
        (_, Source::Policy) => "Policy",
        (_, Source::Count) => "Count",
        (_, Source::Annotation) => "Annotation",
        (_, Source::OwnTtl) => "OwnTTL",
        (_, Source::Maximum) => "Maximum",
    }
}

fn of_state(counts: &mut Counts, state: State) -> Option<&mut u64> {
    match state {
        State::Pending => None,
        State::Due => Some(&mut counts.due),
        State::Kept => Some(&mut counts.kept),
        State::Held => Some(&mut counts.held),
        State::Owned => Some(&mut counts.owned),
        State::Guarded => Some(&mut counts.guarded),
        State::NeedsOwner => Some(&mut counts.needs_owner),
        State::Ungrouped => Some(&mut counts.ungrouped),
        State::NoFinishTime => Some(&mut counts.no_finish_time),
        State::Terminating => Some(&mut counts.terminating),
        State::NativeTtl => Some(&mut counts.native_ttl),
    }
}

/// Whether an object has been terminating for so long that its users are told.
pub(super) fn is_stuck(object: &Facts, now: Timestamp) -> bool {
    object.terminating.get().is_some_and(|since| now >= since.plus(STUCK_AFTER))
}
