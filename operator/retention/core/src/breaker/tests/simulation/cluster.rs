//! What the API server has: objects, namespaces, policies and their status.

use std::{collections::BTreeMap, num::NonZeroU64, sync::Arc};

use trainjob_api::time::Timestamp;

use super::super::super::Record;
use crate::uid::Uid;

/// How many policies there are. The first one decides if it selects an object and enforces, else the second.
pub(super) const POLICIES: usize = 2;
pub(super) const NAMESPACES: usize = 14;
/// The limit of every policy here.
pub(super) const LIMIT: usize = 5;
pub(super) const MAX_COUNT: NonZeroU64 = NonZeroU64::new(LIMIT as u64).unwrap();

pub(super) type Id = u32;

/// A finished object.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) namespace: usize,
    pub(super) finished: i64,
    /// Which policies select it.
    pub(super) selected: [bool; POLICIES],
    /// The TTL that an annotation wishes.
    pub(super) ttl: Option<i64>,
    /// A guard or a webhook keeps it.
    pub(super) kept: bool,
    pub(super) version: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Namespace {
    pub(super) name: Arc<str>,
    pub(super) selected: [bool; POLICIES],
}

#[derive(Debug, Clone)]
pub(super) struct Policy {
    pub(super) generation: i64,
    pub(super) ttl: i64,
    /// Counts edits that change the digest.
    pub(super) edition: i64,
    pub(super) enforces: bool,
    pub(super) annotation: Option<String>,
    pub(super) version: u64,
    pub(super) status: Option<Record>,
}

impl Policy {
    pub(super) fn digest(&self) -> Arc<str> {
        format!("d{}", self.edition).into()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Cluster {
    pub(super) objects: BTreeMap<Id, Object>,
    pub(super) namespaces: Vec<Namespace>,
    pub(super) policies: [Policy; POLICIES],
    next: Id,
}

impl Cluster {
    pub(super) fn new(ttl: [i64; POLICIES]) -> Self {
        let policy = |ttl| Policy {
            generation: 1,
            ttl,
            edition: 1,
            enforces: true,
            annotation: None,
            version: 1,
            status: None,
        };
        let namespace = |index| Namespace {
            name: format!("n{index}").into(),
            // A few are not selected by anything.
            selected: [index < 8, index < 12],
        };
        Self {
            objects: BTreeMap::new(),
            namespaces: (0..NAMESPACES).map(namespace).collect(),
            policies: ttl.map(policy),
            next: 0,
        }
    }

    pub(super) fn add(&mut self, object: Object) -> Id {
        self.next += 1;
        self.objects.insert(self.next, object);
        self.next
    }

    /// Which policy governs an object, and since when it is due under it.
    pub(super) fn plan(&self, object: &Object) -> Option<(usize, i64)> {
        let namespace = &self.namespaces[object.namespace];
        let policy = (0..POLICIES).find(|policy| {
            let selected = object.selected[*policy] && namespace.selected[*policy];
            selected && self.policies[*policy].enforces
        })?;
        let ttl = object.ttl.unwrap_or(self.policies[policy].ttl);
        Some((policy, object.finished + ttl))
    }

    /// All that is due, and under which policy.
    pub(super) fn due(&self, now: i64) -> BTreeMap<Id, (usize, i64)> {
        let due = |(id, object): (&Id, &Object)| {
            let plan = self.plan(object).filter(|(_, due)| *due <= now)?;
            Some((*id, plan))
        };
        self.objects.iter().filter_map(due).collect()
    }

    /// An edit of a policy's spec.
    pub(super) fn edit_policy(&mut self, policy: usize, edit: impl FnOnce(&mut Policy)) {
        let policy = &mut self.policies[policy];
        edit(policy);
        policy.generation += 1;
        policy.version += 1;
    }

    /// An edit of objects.
    pub(super) fn edit(&mut self, ids: &[Id], edit: impl Fn(&mut Object)) {
        for id in ids {
            if let Some(object) = self.objects.get_mut(id) {
                edit(object);
                object.version += 1;
            }
        }
    }

    /// Writes a status, if the policy is still of the version that it is about; says its new version.
    pub(super) fn store(
        &mut self,
        policy: usize,
        version: Option<u64>,
        status: Option<Record>,
    ) -> Option<u64> {
        let policy = &mut self.policies[policy];
        if version.is_some_and(|version| version != policy.version) {
            return None;
        }
        policy.status = status;
        policy.version += 1;
        Some(policy.version)
    }
}

pub(super) fn uid(id: Id) -> Uid {
    Uid::from(&*id.to_string())
}

pub(super) const fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds)
}
