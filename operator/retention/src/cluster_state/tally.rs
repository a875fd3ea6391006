//! What a policy finds, counted for its status (`docs/retention.md`, 7).

use std::{
    collections::{BTreeMap, BinaryHeap},
    sync::Arc,
};

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

const HOUR: i64 = 3_600;

/// What the policies of a kind find.
#[derive(Debug, Default)]
pub struct Survey {
    pub(super) tallies: BTreeMap<Uid, Tally>,
    pub(super) after: Option<ObjectKey>,
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
        self.tallies.get(policy)
    }
}

/// What a policy finds.
#[derive(Debug, Default)]
pub struct Tally {
    /// Finished objects by state.
    pub counts: Counts,
    /// How many objects each rule matches, and how many of them are due.
    pub rules: BTreeMap<Arc<str>, (u64, u64)>,
    /// How many would be deleted until when.
    pub would_delete: WouldDelete,
    /// How many objects have been terminating for more than ten minutes.
    pub stuck: u64,
    /// Whether the bounds cross for some object.
    pub limits_cross: bool,
    /// The earliest deletions, the last of them first.
    next: BinaryHeap<(Timestamp, Earliest)>,
}

/// A deletion to come.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Earliest {
    namespace: Arc<str>,
    name: Box<str>,
    uid: String,
    rule: Arc<str>,
    source: &'static str,
    action: &'static str,
}

impl Tally {
    /// Counts an object that the policy governs.
    pub(super) fn count(&mut self, governed: &Governed<'_, '_>, plan: &Plan<'_>, now: Timestamp) {
        self.counts.finished += 1;
        if let Some(count) = of_state(&mut self.counts, plan.state) {
            *count += 1;
        }
        self.stuck += u64::from(is_stuck(governed, now));
        self.limits_cross |= governed.bounds.cross();
        let is_due = plan.state == State::Due;
        let rule = self.rules.entry(Arc::clone(&plan.rule.name)).or_default();
        rule.0 += 1;
        rule.1 += u64::from(is_due);
        if let Some(due) = plan.due.filter(|_| is_to_be_deleted(plan.state)) {
            self.expect(governed, plan, due, now);
        }
    }

    fn expect(&mut self, governed: &Governed<'_, '_>, plan: &Plan<'_>, due: Due, now: Timestamp) {
        let within = |seconds: i64| u64::from(due.at <= now.plus(seconds));
        self.would_delete.now += within(0);
        self.would_delete.hour += within(HOUR);
        self.would_delete.day += within(24 * HOUR);
        self.would_delete.week += within(7 * 24 * HOUR);
        let is_early = self.next.peek().is_none_or(|(latest, _)| due.at < *latest);
        if self.next.len() < NEXT || is_early {
            self.next.push((due.at, earliest(governed.object, plan, due)));
            if self.next.len() > NEXT {
                self.next.pop();
            }
        }
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
        };
        next.into_iter().map(written).collect()
    }
}

fn earliest(object: &Facts, plan: &Plan<'_>, due: Due) -> Earliest {
    Earliest {
        namespace: Arc::clone(&object.namespace),
        name: object.name.clone(),
        uid: object.uid.to_string(),
        rule: Arc::clone(&plan.rule.name),
        source: source_name(due),
        action: match &plan.rule.action {
            RuleAction::Decide(decide) if decide.delete() == Delete::Owner => "Owner",
            RuleAction::Decide(_) | RuleAction::Defer => "Object",
        },
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
pub(super) fn is_stuck(governed: &Governed<'_, '_>, now: Timestamp) -> bool {
    governed.object.terminating.is_some_and(|since| now >= since.plus(STUCK_AFTER))
}
