//! Timers of many keys, in the order of their instants.

use std::collections::{BTreeSet, HashMap};

use trainjob_core::queue_position::QueueKey;

/// Armed timers of one kind.
#[derive(Debug)]
pub(super) struct Timers<K, At> {
    order: BTreeSet<(At, K)>,
    armed: HashMap<K, At>,
}

impl<K, At> Default for Timers<K, At> {
    fn default() -> Self {
        Self { order: BTreeSet::new(), armed: HashMap::new() }
    }
}

impl<K: QueueKey, At: Ord + Copy> Timers<K, At> {
    /// How many keys are armed.
    pub(super) fn len(&self) -> usize {
        self.armed.len()
    }

    /// What a key is armed with.
    pub(super) fn at(&self, key: &K) -> Option<At> {
        self.armed.get(key).copied()
    }

    /// Arms a key, in place of what it was armed with. True when that is before all others.
    pub(super) fn set(&mut self, key: &K, at: Option<At>) -> bool {
        let before = match at {
            Some(at) => self.armed.insert(key.clone(), at),
            None => self.armed.remove(key),
        };
        if before == at {
            return false;
        }
        if let Some(before) = before {
            self.order.remove(&(before, key.clone()));
        }
        let Some(at) = at else { return false };
        let is_first = self.earliest().is_none_or(|earliest| at < earliest);
        self.order.insert((at, key.clone()));
        is_first
    }

    /// How many entries there are.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.order.len()
    }

    /// The earliest armed instant.
    pub(super) fn earliest(&self) -> Option<At> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes a key whose instant has come.
    pub(super) fn take(&mut self, now: At) -> Option<K> {
        if self.earliest()? > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.armed.remove(&key);
        Some(key)
    }
}
