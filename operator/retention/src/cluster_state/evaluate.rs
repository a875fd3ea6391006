//! Looks at all objects of a kind, in slices, after policies have changed or everything was listed anew
//! (`docs/retention.md`, R63 and R64).
//!
//! That takes three rounds. The first notes places in groups, on which the plans of others depend. The second counts what
//! is due, and when it has ended each policy that was edited is judged. Only from then on anything is deleted, and the
//! third puts what is due into the queue and arms the timers of the rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use trainjob_api::time::Timestamp;
use trainjob_core::{Now, facts::ObjectKey};
use trainjob_retention_core::{
    breaker::DueObject, maybe_timestamp::MaybeTimestamp, policy::Mode, uid::Uid,
};

use super::{
    ClusterState, Slice, audit,
    breakers::{Breakers, Counted},
    kind::{Evaluation, Kind, Round},
    look::due_of,
    namespaces::Namespaces,
    notices::Told,
    stale::Progress,
};
use crate::key::{Key, Position, TargetId, position};

impl ClusterState {
    /// Evaluates so many objects more, of the first kind that has to be evaluated and can be: all is listed, and the time
    /// is known. `None` if there is no such kind.
    pub fn evaluate(&mut self, count: usize, now: Now) -> Option<Slice> {
        let reached = now.reached()?;
        if !self.leads || !self.book.is_listed() || !self.namespaces.is_listed() {
            return None;
        }
        let may = |kind: &Kind| {
            kind.is_listed && kind.knows_pods() && kind.evaluation != Evaluation::Done
        };
        let Some(index) = self.kinds.iter().position(may) else {
            return self.look_again(count, reached);
        };
        let kind = self.kinds.get_mut(index)?;
        let target = TargetId(index);
        let Evaluation::Under { round, after } = &mut kind.evaluation else { return None };
        let (mut round, after) = (std::mem::take(round), after.take());
        let keys = kind.slice(after.as_ref(), count);
        let mut slice = Slice::default();
        for key in &keys {
            match &mut round {
                Round::Placing => {
                    let policies = kind.there(&mut self.namespaces, &key.namespace);
                    kind.place(key, &policies, reached);
                }
                Round::Counting(counted) => {
                    let (namespaces, breakers) = (&mut self.namespaces, &mut self.breakers);
                    count_object(kind, (namespaces, breakers), key, counted, reached);
                }
                Round::Queueing => {
                    let (namespaces, breakers) = (&mut self.namespaces, &mut self.breakers);
                    queue(kind, (namespaces, breakers), (target, key), &mut slice, now);
                }
            }
        }
        let is_last = keys.len() < count;
        let next = match round {
            round if !is_last => Evaluation::Under { round, after: keys.last().cloned() },
            Round::Placing => Evaluation::begins(Round::Counting(BTreeMap::new())),
            Round::Counting(counted) => {
                self.evaluated(target, counted, reached);
                Evaluation::begins(Round::Queueing)
            }
            Round::Queueing => Evaluation::Done,
        };
        if let Some(kind) = self.kinds.get_mut(index) {
            kind.evaluation = next;
        }
        Some(slice)
    }

    /// Looks at so many objects more that others of their group may let go, or in namespaces that were edited or may go on.
    fn look_again(&mut self, count: usize, now: Timestamp) -> Option<Slice> {
        let is_stale = |kind: &Kind| kind.evaluation == Evaluation::Done && !kind.stale.is_empty();
        let index = self.kinds.iter().position(is_stale)?;
        let kind = self.kinds.get_mut(index)?;
        Some(kind.look_again(&mut self.namespaces, TargetId(index), count, now))
    }

    /// All objects of a kind were counted: its policies are judged.
    fn evaluated(&mut self, target: TargetId, mut counted: BTreeMap<Uid, Counted>, now: Timestamp) {
        let Some(kind) = self.kinds.get(target.0) else { return };
        let enforcing = self.book.about(&kind.target);
        for stored in enforcing.filter(|stored| stored.policy.mode == Mode::Enforce) {
            let counted = counted.remove(&stored.policy.uid).unwrap_or_default();
            self.breakers.evaluated(target, stored, counted, now);
        }
    }
}

/// Counts an object for the policy that governs it.
fn count_object(
    kind: &mut Kind,
    (namespaces, breakers): (&mut Namespaces, &mut Breakers),
    key: &ObjectKey,
    counted: &mut BTreeMap<Uid, Counted>,
    now: Timestamp,
) {
    let policies = kind.there(namespaces, &key.namespace);
    let Some(object) = kind.objects.get_mut(key) else { return };
    let answers = object.known_answers();
    let governed = policies.governing(&object.facts);
    let plan = governed.map(|governed| governed.plan(&answers, &kind.groups, now));
    let due = plan.as_ref().and_then(|plan| DueObject::of(plan, &key.namespace, now));
    let policy = plan.as_ref().map(|plan| &plan.policy.uid);
    if object.judged_by.as_deref() != policy.filter(|_| due.is_some()) {
        breakers.forget(object);
    }
    let Some(policy) = policy else { return };
    let counted = counted.entry(policy.clone()).or_default();
    counted.stock += 1;
    if let Some(due) = due {
        counted.due.insert(object.facts.uid.clone(), due);
        object.judged_by = Some(Box::new(policy.clone()));
    }
}

/// Puts an object into the queue if it is due, or if something has to be asked about it, and otherwise arms its timer. It may
/// have changed since it was counted, so the breaker is told once more.
fn queue(
    kind: &mut Kind,
    (namespaces, breakers): (&mut Namespaces, &mut Breakers),
    (target, key): (TargetId, &ObjectKey),
    slice: &mut Slice,
    now: Now,
) {
    let policies = kind.there(namespaces, &key.namespace);
    let Some(reached) = now.reached() else { return };
    kind.note_end_of_hold(key, &policies, breakers, reached);
    let Some(object) = kind.objects.get_mut(key) else { return };
    let answers = object.known_answers();
    let audited = audit::plans(&policies, object, answers, &kind.groups, reached);
    let (mut asks, mut next) = audited.fold((false, None), |(asks, next), (_, plan)| {
        (asks || audit::asks(&plan), next.into_iter().chain(plan.next).min())
    });
    let governed = policies.governing(&object.facts);
    if let Some(governed) = &governed {
        let plan = governed.plan(&answers, &kind.groups, reached);
        let told = Told::of(governed, &plan, object, reached);
        let due = DueObject::of(&plan, &key.namespace, reached);
        breakers.observe(object, due.map(|due| (&plan.policy.uid, due)), reached);
        object.due = due_of(&plan).map(|due| due.at).into();
        // Something is to be told, or it is not known yet whether it takes a place among those that a rule keeps.
        asks |= told.is_news() || audit::asks(&plan);
        next = next.into_iter().chain(plan.next).chain(told.next).min();
    } else {
        breakers.forget(object);
        object.due = MaybeTimestamp::NONE;
    }
    // The answer may be old by now, and nothing asks again by itself.
    asks |= object.is_kept_by_answer();
    let key = Key { target, object: key.clone() };
    match (object.due.get(), next) {
        (Some(due), _) if due <= reached => {
            slice.look.push((position(Some(due), Some(reached)), key));
        }
        _ if asks => slice.look.push((position(None, None), key)),
        (_, Some(next)) => slice.later.push((key, next)),
        (_, None) => {}
    }
}

impl Kind {
    /// Looks at so many single objects more, or at so many of the first namespace that has to be looked at again.
    pub(super) fn look_again(
        &mut self,
        namespaces: &mut Namespaces,
        target: TargetId,
        count: usize,
        now: Timestamp,
    ) -> Slice {
        let mut slice = Slice::default();
        let objects = self.stale.take_objects(count);
        if !objects.is_empty() {
            slice.look = self.positions(target, objects, now);
            return slice;
        }
        let Some((namespace, progress)) = self.stale.take() else { return slice };
        let keys = self.slice_of(&namespace, progress.after.as_ref(), count);
        let mut look = BTreeSet::new();
        if progress.is_placed {
            look.extend(keys.iter().cloned());
        } else {
            let policies = self.there(namespaces, &namespace);
            for key in &keys {
                look.extend(self.place(key, &policies, now));
            }
        }
        slice.look = self.positions(target, look, now);
        let next = match (keys.len() < count, progress.is_placed) {
            (true, true) => return slice,
            (true, false) => Progress { is_placed: true, after: None },
            (false, is_placed) => Progress { is_placed, after: keys.last().cloned() },
        };
        self.stale.put_back(namespace, next);
        slice
    }

    fn positions(
        &self,
        target: TargetId,
        objects: BTreeSet<ObjectKey>,
        now: Timestamp,
    ) -> Vec<(Position, Key)> {
        let looked_at = objects.into_iter().map(|object| {
            let due = self.objects.get(&object).and_then(|object| object.due.get());
            (position(due.filter(|due| *due <= now), Some(now)), Key { target, object })
        });
        looked_at.collect()
    }

    /// Up to so many objects of a namespace after this one.
    fn slice_of(
        &self,
        namespace: &Arc<str>,
        after: Option<&ObjectKey>,
        count: usize,
    ) -> Vec<ObjectKey> {
        // No object has an empty name.
        let first = ObjectKey::new(Arc::clone(namespace), "");
        let objects = self.objects.after(after.or(Some(&first)));
        let keys = objects.map(|object| &object.key).take_while(|key| *key.namespace == *namespace);
        keys.take(count).cloned().collect()
    }
}
