//! All objects that are due under a policy, how they stand, and how many of them wait.
//!
//! What waits is counted anew each time, from the objects, so no number can drift from the truth.

use std::{
    collections::{BTreeMap, HashMap},
    num::NonZeroU64,
    sync::Arc,
};

use trainjob_api::time::Timestamp;

use super::{
    limits::{PATIENCE, SETTLING, too_many_in_all},
    object::DueObject,
    record::Scope,
    standing::Standing,
};
use crate::uid::Uid;

/// All objects that are due under a policy.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    rows: HashMap<Uid, Row>,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) object: DueObject,
    pub(super) standing: Standing,
}

impl Ledger {
    pub(super) fn new(
        objects: impl IntoIterator<Item = (Uid, DueObject)>,
        standing: impl Fn(&DueObject) -> Standing,
    ) -> Self {
        let row = |(uid, object)| (uid, Row { standing: standing(&object), object });
        Self { rows: objects.into_iter().map(row).collect() }
    }

    pub(super) fn get(&self, uid: &Uid) -> Option<&Row> {
        self.rows.get(uid)
    }

    pub(super) fn insert(&mut self, uid: Uid, row: Row) {
        self.rows.insert(uid, row);
    }

    pub(super) fn remove(&mut self, uid: &Uid) {
        self.rows.remove(uid);
    }

    pub(super) fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Makes all objects wait from now on.
    pub(super) fn hold_all(&mut self, now: Timestamp) {
        for row in self.rows.values_mut() {
            row.standing = Standing::Waiting { since: now };
        }
    }

    /// Lets those go that wait where this says so, for at least so many seconds.
    pub(super) fn let_go(&mut self, seconds: i64, applies: impl Fn(&str) -> bool, now: Timestamp) {
        for row in self.rows.values_mut() {
            if let Standing::Waiting { since } = row.standing
                && since.plus(seconds) <= now
                && applies(&row.object.namespace)
            {
                row.standing = Standing::Expected { since: now };
            }
        }
    }

    /// The earliest due instant of what was expected lately and is still there.
    pub(super) fn earliest_expected(&self, now: Timestamp) -> Option<Timestamp> {
        let lately = |standing| match standing {
            Standing::Expected { since } => since.plus(PATIENCE) > now,
            Standing::Waiting { .. } | Standing::Unknown { .. } => false,
        };
        let expected = self.rows.values().filter(|row| lately(row.standing));
        expected.map(|row| row.object.due).min()
    }

    /// Counts what waits.
    pub(super) fn waiting(&self) -> Waiting {
        let mut waiting = Waiting { namespaces: BTreeMap::new() };
        for row in self.rows.values() {
            if matches!(row.standing, Standing::Waiting { .. }) {
                let namespace = Arc::clone(&row.object.namespace);
                *waiting.namespaces.entry(namespace).or_default() += 1;
            }
        }
        waiting
    }

    /// What waits, where this says so, and until when the last of it does.
    pub(super) fn waiting_where(&self, applies: impl Fn(&str) -> bool) -> Option<WaitingObjects> {
        let mut found: Option<WaitingObjects> = None;
        for row in self.rows.values().filter(|row| applies(&row.object.namespace)) {
            let Standing::Waiting { since } = row.standing else { continue };
            let until = since.plus(SETTLING);
            let namespaces = BTreeMap::new();
            let waiting = found.get_or_insert(WaitingObjects { until, namespaces });
            waiting.until = waiting.until.max(until);
            let namespace = Arc::clone(&row.object.namespace);
            *waiting.namespaces.entry(namespace).or_default() += 1;
        }
        found
    }

    /// When the next of those that wait has waited long enough.
    pub(super) fn next_settled(&self, now: Timestamp) -> Option<Timestamp> {
        let settles = self.rows.values().filter_map(|row| match row.standing {
            Standing::Waiting { since } => Some(since.plus(SETTLING)),
            Standing::Expected { .. } | Standing::Unknown { .. } => None,
        });
        settles.filter(|instant| *instant > now).min()
    }
}

/// Objects that are unexpected and wait, without anybody having to acknowledge them (R42).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingObjects {
    /// When the last of them becomes expected.
    pub until: Timestamp,
    /// How many there are in each namespace.
    pub namespaces: BTreeMap<Arc<str>, u64>,
}

impl WaitingObjects {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.namespaces.values().sum()
    }
}

/// How many objects wait, by namespace.
#[derive(Debug)]
pub(super) struct Waiting {
    namespaces: BTreeMap<Arc<str>, u64>,
}

impl Waiting {
    /// How many wait in a namespace.
    pub(super) fn within(&self, namespace: &str) -> u64 {
        self.namespaces.get(namespace).copied().unwrap_or_default()
    }

    /// How many wait.
    pub(super) fn total(&self) -> u64 {
        self.namespaces.values().sum()
    }

    /// Where more wait than a namespace may let go, and how many.
    pub(super) fn full(&self, max_count: NonZeroU64) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let counts = self.namespaces.iter().map(|(namespace, count)| (namespace, *count));
        counts.filter(move |(_, count)| *count > max_count.get())
    }

    /// Whether more wait than the policy may let go, in all namespaces.
    pub(super) fn is_too_much(&self, max_count: NonZeroU64) -> bool {
        too_many_in_all(self.namespaces.values().copied(), max_count)
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
}
