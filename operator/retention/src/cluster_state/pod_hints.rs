//! What is asked and answered about the Pods of objects (`docs/retention.md`, R22).

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
};

use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::{
    pod_label::{PodLabel, PodLabelValue},
    uid::Uid,
};

use super::step::Reply;
use crate::key::TargetId;

/// A list of Pods that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodsToList {
    /// For the objects of this kind.
    pub target: TargetId,
    /// Which label the Pods have. Those that run count, too: they may end later.
    pub label: PodLabel,
}

/// The objects that may have Pods, as a list of Pods shows them by a label. They are kept as hashes: one that is taken for
/// another is asked for in vain.
#[derive(Debug, Default)]
pub struct PodHints {
    known: HashSet<u64>,
    hasher: RandomState,
}

/// What came of the deletion of the Pods of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodsReply {
    /// So many deletions were accepted.
    pub deleted: u32,
    /// What is left.
    pub left: PodsLeft,
}

/// What is left of the Pods of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodsLeft {
    /// None that goes before it.
    None,
    /// Some that are to be deleted now.
    Due,
    /// Some that run, or that have holds.
    Later,
    /// It is not known: a request has failed.
    Unknown(Reply),
}

impl PodsReply {
    /// What the API server said last of a deletion; `None`: none was asked for.
    pub(super) fn answer(self) -> Option<Reply> {
        match self.left {
            PodsLeft::Unknown(failure) => Some(failure),
            PodsLeft::None | PodsLeft::Due | PodsLeft::Later => {
                (self.deleted > 0).then_some(Reply::Accepted)
            }
        }
    }
}

impl PodHints {
    /// A Pod in this namespace has the label with this value: a UID, or the name of what it belongs to.
    pub fn add(&mut self, value: PodLabelValue, namespace: &str, text: &str) {
        let hash = self.hash(value, namespace, text);
        self.known.insert(hash);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn has(&self, value: PodLabelValue, key: &ObjectKey, uid: &Uid) -> bool {
        let hash = match value {
            PodLabelValue::Uid => self.hash(value, &key.namespace, &uid.to_string()),
            PodLabelValue::Name | PodLabelValue::JobSetUid => {
                self.hash(value, &key.namespace, &key.name)
            }
        };
        self.known.contains(&hash)
    }

    fn hash(&self, value: PodLabelValue, namespace: &str, text: &str) -> u64 {
        match value {
            PodLabelValue::Uid => self.hasher.hash_one(text),
            PodLabelValue::Name | PodLabelValue::JobSetUid => {
                self.hasher.hash_one((namespace, text))
            }
        }
    }
}
