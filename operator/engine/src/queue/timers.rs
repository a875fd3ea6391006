//! Timers of many keys in one heap.
//!
//! An entry of the heap counts only while it is the one its key is armed with, so that a key is armed anew without a
//! search.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use trainjob_core::queue_position::QueueKey;

/// A heap is swept when it is at least this long and mostly of no use.
pub(super) const SWEEP_FROM: usize = 1_024;

/// Armed timers of one kind.
#[derive(Debug)]
pub(super) struct Timers<K, At> {
    heap: BinaryHeap<Reverse<(At, K)>>,
    armed: HashMap<K, At>,
}

impl<K: Ord, At: Ord> Default for Timers<K, At> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), armed: HashMap::new() }
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
        let Some(at) = at else {
            self.armed.remove(key);
            return false;
        };
        if self.armed.get(key) == Some(&at) {
            return false;
        }
        let first = self.heap.peek().is_none_or(|Reverse((first, _))| at < *first);
        self.armed.insert(key.clone(), at);
        self.heap.push(Reverse((at, key.clone())));
        self.sweep();
        first
    }

    /// Drops entries that do not count any more once they are most: they would stay until their time.
    fn sweep(&mut self) {
        if self.heap.len() > SWEEP_FROM && self.heap.len() > 2 * self.armed.len() {
            let armed = &self.armed;
            self.heap.retain(|Reverse((at, key))| armed.get(key) == Some(at));
        }
    }

    /// How many entries there are, those that do not count included.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.heap.len()
    }

    /// The earliest armed instant.
    pub(super) fn earliest(&mut self) -> Option<At> {
        loop {
            let Reverse((at, key)) = self.heap.peek()?;
            if self.armed.get(key) == Some(at) {
                return Some(*at);
            }
            self.heap.pop();
        }
    }

    /// Takes a key whose instant has come.
    pub(super) fn take(&mut self, now: At) -> Option<K> {
        if self.earliest()? > now {
            return None;
        }
        let Reverse((_, key)) = self.heap.pop()?;
        self.armed.remove(&key);
        Some(key)
    }
}
