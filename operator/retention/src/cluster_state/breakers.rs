//! The breakers of the policies that enforce: what stops a mass deletion that nobody meant (`docs/retention.md`, R40 to R43).
//!
//! The rules are those of [`trainjob_retention_core::breaker`]. Here is kept which policy each breaker is of, what its
//! status says, and which breaker knows of an object that is due.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    num::NonZeroU64,
    sync::Arc,
};

use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    breaker::{
        Breaker, DueObject, Hold, News, PolicyVersion, Reason, Record, Trip, WaitingObjects,
    },
    stored::StoredPolicy,
    uid::Uid,
};

use super::object::Object;
use crate::key::TargetId;

/// What an evaluation has counted for a policy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// How many finished objects it governs.
    pub(super) stock: u64,
    /// What is due.
    pub(super) due: HashMap<Uid, DueObject>,
}

/// What a judgement of a policy has found.
#[derive(Debug)]
pub struct Judgement {
    /// The policy.
    pub policy: Uid,
    /// The kind that it is about.
    pub target: TargetId,
    /// The trip that was acknowledged.
    pub acknowledged: Option<Trip>,
    /// The trip, if it is new.
    pub tripped: Option<Trip>,
    /// Whether objects may go that could not go before.
    pub lets_go: bool,
}

#[derive(Debug)]
struct Judged {
    breaker: Breaker,
    target: TargetId,
    stock: u64,
    acknowledged: Option<Arc<str>>,
    /// When to judge again.
    next: Option<Timestamp>,
    /// Whether anything has changed since it was judged.
    is_changed: bool,
}

/// The breakers of all policies that enforce and were judged.
#[derive(Debug, Default)]
pub(super) struct Breakers {
    judged: BTreeMap<Uid, Judged>,
    /// What the statuses of policies say, as far as it is for the breaker.
    records: BTreeMap<Uid, Record>,
    /// Policies that enforced when the clock jumped, and were not judged then, nor does their status tell of it.
    stepped: BTreeSet<Uid>,
}

fn is_step(trip: &Trip) -> bool {
    trip.reason() == Reason::ClockStep
}

impl Breakers {
    /// There are no other policies any more.
    pub(super) fn retain(&mut self, policies: &BTreeSet<Uid>) {
        self.judged.retain(|policy, _| policies.contains(policy));
        self.records.retain(|policy, _| policies.contains(policy));
        self.stepped.retain(|policy| policies.contains(policy));
    }

    /// A policy does not enforce.
    pub(super) fn remove(&mut self, policy: &Uid) {
        self.judged.remove(policy);
        self.stepped.remove(policy);
    }

    /// Nothing is known of the objects of a kind any more.
    pub(super) fn forget_kind(&mut self, target: TargetId) {
        let of_kind = self.judged.iter().filter(|(_, judged)| judged.target == target);
        let stepped = of_kind.filter(|(_, judged)| judged.breaker.tripped().is_some_and(is_step));
        // No status may say yet that the clock jumped.
        self.stepped.extend(stepped.map(|(policy, _)| policy.clone()));
        self.judged.retain(|_, judged| judged.target != target);
    }

    /// Takes in what the status of a policy says. True if the policy has to be judged anew because of that.
    pub(super) fn read(&mut self, policy: &Uid, record: Option<Record>) -> bool {
        let judged = self.judged.get(policy);
        let is_outdated = judged.is_some_and(|judged| judged.breaker.is_outdated(record.as_ref()));
        if record.as_ref().and_then(|record| record.trip.as_ref()).is_some_and(is_step) {
            // From then on the status tells what becomes of the jump. A standby sees neither the trip nor its acknowledgement
            // otherwise.
            self.stepped.remove(policy);
        }
        match record {
            Some(record) => self.records.insert(policy.clone(), record),
            None => self.records.remove(policy),
        };
        is_outdated
    }

    /// Takes in what of an object is due, and under which policy; `None` if nothing is. The first time after its end, or
    /// that of its owner, was told, that is what made it due.
    pub(super) fn observe(
        &mut self,
        object: &mut Object,
        due: Option<(&Uid, DueObject)>,
        now: Timestamp,
    ) {
        if object.judged_by.as_deref() != due.as_ref().map(|(policy, _)| *policy) {
            self.forget(object);
        }
        let is_end = mem::take(&mut object.end_is_news);
        let news = if is_end { News::End } else { News::Other };
        let Some((policy, due)) = due else { return };
        if let Some(judged) = self.judged.get_mut(policy) {
            let uid = object.facts.uid.clone();
            let before = judged.breaker.standing(&uid);
            judged.breaker.observe(uid.clone(), due, news, now);
            judged.is_changed |= judged.breaker.standing(&uid) != before;
            if object.judged_by.is_none() {
                object.judged_by = Some(Box::new(policy.clone()));
            }
        }
    }

    /// An object is gone, or is not due any more.
    pub(super) fn forget(&mut self, object: &mut Object) {
        let Some(policy) = object.judged_by.take() else { return };
        if let Some(judged) = self.judged.get_mut(&*policy) {
            judged.breaker.forget(&object.facts.uid);
            judged.is_changed = true;
        }
    }

    /// Whether an object may be deleted under a policy now. `None`: the policy was not judged yet.
    pub(super) fn may_delete(&self, policy: &Uid, object: &Uid) -> Option<Result<(), Hold>> {
        self.judged.get(policy).map(|judged| judged.breaker.may_delete(object))
    }

    /// Judges a policy whose kind was evaluated at `now`: anew, if it was edited or is new, and else goes on.
    pub(super) fn evaluated(
        &mut self,
        target: TargetId,
        stored: &StoredPolicy,
        counted: Counted,
        now: Timestamp,
    ) {
        let policy = &stored.policy.uid;
        let version = PolicyVersion {
            generation: stored.generation,
            digest: stored.digest.to_string().into(),
            max_count: NonZeroU64::from(stored.breaker_count),
        };
        let record = self.records.get(policy);
        let Counted { stock, due } = counted;
        let mut breaker = match self.judged.remove(policy).map(|judged| judged.breaker) {
            None => Breaker::start(version, record, stock, due, now),
            Some(mut breaker)
                if breaker.version().digest == version.digest && !breaker.is_outdated(record) =>
            {
                breaker.update(version.generation, version.max_count);
                for (uid, object) in due {
                    breaker.observe(uid, object, News::Other, now);
                }
                breaker
            }
            Some(breaker) => breaker.start_again(version, record, stock, due, now),
        };
        if self.stepped.remove(policy) {
            breaker.note_step(stock, now);
        }
        let acknowledged = stored.acknowledged_trip.clone();
        let judged = Judged { breaker, target, stock, acknowledged, next: None, is_changed: true };
        self.judged.insert(policy.clone(), judged);
    }

    /// Judges what has changed, or what it is time to judge.
    pub(super) fn judge(&mut self, now: Timestamp) -> Vec<Judgement> {
        let is_due = |judged: &Judged| judged.is_changed || judged.next.is_some_and(|at| at <= now);
        let due = self.judged.iter_mut().filter(|(_, judged)| is_due(judged));
        due.map(|(policy, judged)| judged.judge(policy, now)).collect()
    }

    /// The clock has jumped, to `now`: everything that is due waits for an acknowledgement (R46).
    ///
    /// One of the policies that enforce which is not judged at this moment has tripped as soon as it is, whether anything was
    /// stored of it yet or not.
    pub(super) fn step_clock<'u>(
        &mut self,
        enforcing: impl Iterator<Item = &'u Uid>,
        now: Timestamp,
    ) {
        let others = enforcing.filter(|policy| !self.judged.contains_key(*policy));
        self.stepped.extend(others.cloned());
        for judged in self.judged.values_mut() {
            judged.breaker.step_clock(judged.stock, now);
            judged.is_changed = true;
        }
    }

    /// All that was due for the policies of a kind until then was observed, with live watches.
    pub(super) fn looked(&mut self, target: TargetId, until: Timestamp) {
        for judged in self.judged.values_mut().filter(|judged| judged.target == target) {
            judged.breaker.looked(until);
        }
    }

    /// What is to be stored of a policy; `None` if it was not judged.
    pub(super) fn record(&self, policy: &Uid) -> Option<Record> {
        self.judged.get(policy).map(|judged| judged.breaker.record())
    }

    /// Whether deletions under a policy wait until its record is stored.
    pub(super) fn awaits_storage(&self, policy: &Uid) -> bool {
        self.judged.get(policy).is_some_and(|judged| judged.breaker.awaits_storage())
    }

    /// Takes in that a record was stored. The kind of which objects may go because of that.
    pub(super) fn stored(&mut self, policy: &Uid, record: Record) -> Option<TargetId> {
        self.records.insert(policy.clone(), record.clone());
        let judged = self.judged.get_mut(policy)?;
        judged.breaker.stored(record).then_some(judged.target)
    }

    /// What waits for an acknowledgement under a policy.
    pub(super) fn tripped(&self, policy: &Uid) -> Option<&Trip> {
        self.judged.get(policy).and_then(|judged| judged.breaker.tripped())
    }

    /// What of a policy is unexpected and waits where it has not tripped.
    pub(super) fn waiting(&self, policy: &Uid) -> Option<WaitingObjects> {
        self.judged.get(policy).and_then(|judged| judged.breaker.waiting())
    }

    /// How many objects of a policy are unexpected and wait; 0 if it was not judged.
    pub(super) fn unexpected(&self, policy: &Uid) -> u64 {
        self.judged.get(policy).map_or(0, |judged| judged.breaker.unexpected())
    }
}

impl Judged {
    fn judge(&mut self, policy: &Uid, now: Timestamp) -> Judgement {
        let waited = self.breaker.unexpected();
        let was_tripped = self.breaker.tripped().is_some();
        let verdict = self.breaker.judge(self.stock, self.acknowledged.as_deref(), now);
        (self.next, self.is_changed) = (verdict.next, false);
        let lets_go =
            self.breaker.unexpected() < waited || was_tripped && self.breaker.tripped().is_none();
        Judgement {
            policy: policy.clone(),
            target: self.target,
            acknowledged: verdict.acknowledged,
            tripped: verdict.tripped,
            lets_go,
        }
    }
}
