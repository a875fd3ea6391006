//! Whether a trip has a reason, and whether an acknowledgement lets go no more than it may.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    super::{
        super::super::{Reason, Scope, Trip},
        cluster::{Id, LIMIT},
        leader::{Acknowledged, Judged, Leader},
    },
    Oracle,
};

impl Oracle {
    pub(in super::super) fn judged(
        &mut self,
        judged: Judged,
        leader: &Leader,
        annotation: Option<&str>,
    ) {
        let policy = judged.policy;
        if let Some(acknowledged) = judged.acknowledged {
            let Acknowledged { trip, ids } = &acknowledged;
            let is_named = Some(trip.id.as_str()) == annotation;
            self.check(is_named, || format!("nobody acknowledged {trip:?}"));
            self.check(is_within(trip, ids, leader), || format!("{} of {trip:?}", ids.len()));
            self.pending[policy] = Some(acknowledged);
        }
        if let Some(trip) = judged.tripped.filter(|_| !leader.is_stale) {
            let is_justified = self.is_justified(policy, &trip, judged.before.as_ref(), leader);
            self.check(is_justified, || format!("{trip:?} for what was expected"));
        }
    }

    /// Whether there are enough objects for this trip that an edit made due.
    ///
    /// What an earlier leader could not tell from a backlog, one whose view is older than the edit can.
    fn is_justified(
        &self,
        policy: usize,
        trip: &Trip,
        before: Option<&Trip>,
        leader: &Leader,
    ) -> bool {
        let mut counts = BTreeMap::<Arc<str>, usize>::new();
        let marked = self.marks.iter().filter(|(_, mark)| !mark.end_seen).map(|(key, _)| key);
        let seen = self.overlooked.iter().filter(|(_, edited)| **edited > self.first_view);
        let edited: BTreeSet<_> = marked.chain(seen.map(|(key, _)| key)).collect();
        for (_, id) in edited.into_iter().filter(|(of, _)| *of == policy) {
            if let Some(row) = leader.rows.get(id).filter(|row| row.policy == policy) {
                *counts.entry(Arc::clone(&row.namespace)).or_default() += 1;
            }
        }
        let goes_on = before.is_some_and(|before| matches!(before.scope, Scope::Policy { .. }));
        match &trip.scope {
            Scope::Policy { reason: Reason::ClockStep, .. } => self.stepped[policy],
            Scope::Policy { .. } if goes_on => counts.values().sum::<usize>() > LIMIT,
            Scope::Policy { .. } => {
                counts.values().map(|count| *count.min(&LIMIT)).sum::<usize>() > 10 * LIMIT
            }
            Scope::Namespaces(names) => {
                names.keys().all(|name| counts.get(name).is_some_and(|count| *count > LIMIT))
            }
        }
    }
}

/// Whether an acknowledgement let go what it names and a tenth more at most, in each namespace.
fn is_within(trip: &Trip, ids: &[Id], leader: &Leader) -> bool {
    let allowed = |count: u64| usize::try_from(count + count / 10).unwrap().max(LIMIT);
    let within = |name: &str| ids.iter().filter(|id| &*leader.rows[*id].namespace == name).count();
    match &trip.scope {
        Scope::Policy { count, .. } => ids.len() <= allowed(*count),
        Scope::Namespaces(names) => {
            names.iter().all(|(name, count)| within(name) <= allowed(*count))
        }
    }
}
