//! How many unexpected objects wait, by namespace.
//!
//! It is counted anew each time, from the objects, so no number can drift from the truth.

use std::{collections::BTreeMap, sync::Arc};

use trainjob_api::time::Timestamp;

use super::{
    limits::too_many_in_all,
    record::{Scope, Trip},
    standing::{Due, Standing},
};

/// How many wait, and for what.
#[derive(Debug)]
pub(super) struct Waiting {
    namespaces: BTreeMap<Arc<str>, u64>,
    /// Since when that one is waiting which has settled next.
    unsettled: Option<Timestamp>,
}

impl Waiting {
    /// Counts what waits. Since `settled` or earlier is long enough.
    pub(super) fn of<'a>(rows: impl Iterator<Item = Due<'a>>, settled: Timestamp) -> Self {
        let mut waiting = Self { namespaces: BTreeMap::new(), unsettled: None };
        for row in rows {
            let since = match row.standing {
                Standing::Expected => continue,
                Standing::Waiting { since } | Standing::Doubtful { since } => since,
            };
            if since > settled {
                waiting.unsettled = Some(waiting.unsettled.map_or(since, |it| it.min(since)));
            }
            if matches!(row.standing, Standing::Waiting { .. }) {
                *waiting.namespaces.entry(Arc::clone(row.namespace)).or_default() += 1;
            }
        }
        waiting
    }

    /// Since when that one waits which has settled next.
    pub(super) const fn unsettled(&self) -> Option<Timestamp> {
        self.unsettled
    }

    /// How many wait in a namespace.
    pub(super) fn within(&self, namespace: &str) -> u64 {
        self.namespaces.get(namespace).copied().unwrap_or_default()
    }

    /// How many wait.
    pub(super) fn total(&self) -> u64 {
        self.namespaces.values().sum()
    }

    /// Where more wait than a namespace may let go, and how many.
    pub(super) fn full(&self, max_count: u64) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let counts = self.namespaces.iter().map(|(namespace, count)| (namespace, *count));
        counts.filter(move |(_, count)| *count > max_count)
    }

    /// Whether more wait than the policy may let go, in all namespaces.
    pub(super) fn is_too_much(&self, max_count: u64) -> bool {
        too_many_in_all(self.namespaces.values().copied(), max_count)
    }

    /// Whether so many trip anything.
    pub(super) fn trips(&self, max_count: u64) -> bool {
        self.full(max_count).next().is_some() || self.is_too_much(max_count)
    }

    /// Counts again those that a trip is about.
    pub(super) fn counted_anew(&self, scope: &Scope) -> Scope {
        match scope {
            Scope::Policy { reason, .. } => Scope::Policy { reason: *reason, count: self.total() },
            Scope::Namespaces(namespaces) => {
                let names = namespaces.keys();
                let counts = names.map(|name| (Arc::clone(name), self.within(name)));
                Scope::Namespaces(counts.collect())
            }
        }
    }

    /// Forgets those that an acknowledged trip was about.
    pub(super) fn forget(&mut self, trip: &Trip) {
        self.namespaces.retain(|namespace, _| !trip.stops(namespace));
    }
}
