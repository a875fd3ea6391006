//! Looks at all objects of a kind, in slices, after policies have changed or everything was listed anew
//! (`docs/retention.md`, R63 and R64).
//!
//! That takes three rounds. The first notes places in groups, on which the plans of others depend. The second counts what
//! is due, and when it has ended each policy that was edited is judged. Only from then on anything is deleted, and the
//! third puts what is due into the queue and arms the timers of the rest.

use std::collections::BTreeMap;

use trainjob_api::time::Timestamp;
use trainjob_core::{Now, facts::ObjectKey};
use trainjob_retention_core::{policy::Mode, uid::Uid};

use super::{
    Room, Slice,
    breaker::Breaker,
    kind::{Evaluation, Kind, Round},
    namespaces::Namespaces,
};
use crate::key::{Key, TargetId, position};

impl Room {
    /// Evaluates so many objects more, of the first kind that has to be evaluated and can be: all is listed, and the time
    /// is known. `None` if there is no such kind.
    pub fn evaluate(&mut self, count: usize, now: Now) -> Option<Slice> {
        let reached = now.reached()?;
        if !self.book.is_listed() || !self.namespaces.is_listed() {
            return None;
        }
        let may = |kind: &Kind| kind.is_listed && kind.evaluation != Evaluation::Done;
        let index = self.kinds.iter().position(may)?;
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
                Round::Counting(due) => count_due(kind, &mut self.namespaces, key, due, reached),
                Round::Queueing => {
                    queue(kind, &mut self.namespaces, (target, key), &mut slice, now)
                }
            }
        }
        let is_last = keys.len() < count;
        let next = match round {
            round if !is_last => Evaluation::Under { round, after: keys.last().cloned() },
            Round::Placing => Evaluation::begins(Round::Counting(BTreeMap::new())),
            Round::Counting(due) => {
                self.judge(target, &due);
                Evaluation::begins(Round::Queueing)
            }
            Round::Queueing => Evaluation::Done,
        };
        if let Some(kind) = self.kinds.get_mut(index) {
            kind.evaluation = next;
        }
        Some(slice)
    }

    /// Judges the policies of a kind that were edited.
    fn judge(&mut self, target: TargetId, due: &BTreeMap<Uid, u64>) {
        let Some(kind) = self.kinds.get(target.0) else { return };
        if !self.unjudged.remove(&target) {
            return;
        }
        for stored in self.book.about(&kind.target) {
            let uid = &stored.policy.uid;
            if stored.policy.mode == Mode::Enforce {
                let due = due.get(uid).copied().unwrap_or(0);
                let breaker = Breaker::judge(due, stored.breaker_count.get().into());
                self.breakers.insert(uid.clone(), breaker);
            }
        }
    }
}

/// Counts an object that is due for the policy that governs it.
fn count_due(
    kind: &mut Kind,
    namespaces: &mut Namespaces,
    key: &ObjectKey,
    due: &mut BTreeMap<Uid, u64>,
    now: Timestamp,
) {
    let policies = kind.there(namespaces, &key.namespace);
    let Some(object) = kind.objects.get(key) else { return };
    let Some(governed) = policies.governing(&object.facts) else { return };
    let plan = governed.plan(&object.known_answers(), &kind.groups, now);
    if plan.due.is_some_and(|due| due.at <= now) {
        *due.entry(governed.policy.uid.clone()).or_default() += 1;
    }
}

/// Puts an object into the queue if it is due, and otherwise arms its timer.
fn queue(
    kind: &mut Kind,
    namespaces: &mut Namespaces,
    (target, key): (TargetId, &ObjectKey),
    slice: &mut Slice,
    now: Now,
) {
    let policies = kind.there(namespaces, &key.namespace);
    let (Some(object), Some(reached)) = (kind.objects.get_mut(key), now.reached()) else { return };
    let Some(governed) = policies.governing(&object.facts) else { return };
    let plan = governed.plan(&object.known_answers(), &kind.groups, reached);
    object.due = plan.due.map(|due| due.at);
    let key = Key { target, object: key.clone() };
    match (object.due, plan.next) {
        (Some(due), _) if due <= reached => {
            slice.look.push((position(Some(due), Some(reached)), key));
        }
        (_, Some(next)) => slice.later.push((key, next)),
        (_, None) => {}
    }
}
