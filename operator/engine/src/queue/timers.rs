//! Timers of many keys, the earliest first.
//!
//! A heap, and where in it each key is: a hundred thousand keys are armed for days, and this takes half of the room of an
//! ordered set and a map.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use trainjob_core::queue_position::QueueKey;

/// Children of a node. The more, the fewer keys have to be found in the table when one moves.
const CHILDREN: usize = 4;

/// The place of a key that is on its way to another.
const MOVING: u32 = u32::MAX;

/// Armed timers of one kind. A place that is handed on here is always one that the heap has.
#[derive(Debug)]
pub(super) struct Timers<K, At> {
    /// No key comes before its parent.
    heap: Vec<(At, K)>,
    /// Where in the heap each key is, by the hash of the key.
    places: HashTable<u32>,
    hasher: RandomState,
}

impl<K, At> Default for Timers<K, At> {
    fn default() -> Self {
        Self { heap: Vec::new(), places: HashTable::new(), hasher: RandomState::new() }
    }
}

impl<K: QueueKey, At: Ord + Copy> Timers<K, At> {
    /// How many keys are armed.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// What a key is armed with.
    pub(super) fn at(&self, key: &K) -> Option<At> {
        self.instant(self.place(key)?)
    }

    /// Arms a key, in place of what it was armed with. True when it is the earliest then, and was armed with something else.
    pub(super) fn set(&mut self, key: &K, at: Option<At>) -> bool {
        let place = self.place(key);
        if place.and_then(|place| self.instant(place)) == at {
            return false;
        }
        match (place, at) {
            (Some(place), None) => {
                self.remove(place);
                return false;
            }
            (Some(place), Some(at)) => self.change(place, at),
            (None, Some(at)) => self.insert(at, key.clone()),
            (None, None) => {}
        }
        self.place(key) == Some(0)
    }

    /// The earliest armed instant.
    pub(super) fn earliest(&self) -> Option<At> {
        self.instant(0)
    }

    /// Takes a key whose instant has come.
    pub(super) fn take(&mut self, now: At) -> Option<K> {
        if self.earliest()? > now {
            return None;
        }
        self.remove(0)
    }

    fn instant(&self, place: usize) -> Option<At> {
        self.heap.get(place).map(|(at, _)| *at)
    }

    fn place(&self, key: &K) -> Option<usize> {
        let is_it = |place: &u32| self.heap.get(index(*place)).is_some_and(|(_, it)| it == key);
        self.places.find(self.hasher.hash_one(key), is_it).map(|place| index(*place))
    }

    fn insert(&mut self, at: At, key: K) {
        if self.heap.len() == self.heap.capacity() {
            // By an eighth, not to the double: there may be a hundred thousand.
            self.heap.reserve_exact(self.heap.len() / 8 + 8);
        }
        let place = self.heap.len();
        let Self { heap, places, hasher } = self;
        heap.push((at, key));
        let hash = |place: &u32| heap.get(index(*place)).map_or(0, |(_, key)| hasher.hash_one(key));
        let here = number(place);
        places.insert_unique(hash(&here), here, hash);
        self.settle(place);
    }

    fn change(&mut self, place: usize, to: At) {
        if let Some((at, _)) = self.heap.get_mut(place) {
            *at = to;
        }
        self.settle(place);
    }

    fn remove(&mut self, place: usize) -> Option<K> {
        let last = self.heap.len().checked_sub(1)?;
        let hash = self.hasher.hash_one(&self.heap.get(place)?.1);
        if let Ok(entry) = self.places.find_entry(hash, |it| index(*it) == place) {
            entry.remove();
        }
        if place != last {
            self.moves(last, number(last), number(place));
        }
        let (_, key) = self.heap.swap_remove(place);
        if place != last {
            self.settle(place);
        }
        Some(key)
    }

    /// Brings what is at this place to where it belongs.
    fn settle(&mut self, place: usize) {
        self.moves(place, number(place), MOVING);
        let mut place = place;
        while let Some(parent) = place.checked_sub(1).map(|it| it / CHILDREN)
            && self.instant(place) < self.instant(parent)
        {
            self.exchange(parent, place);
            place = parent;
        }
        while let Some(child) = self.earliest_child(place)
            && self.instant(child) < self.instant(place)
        {
            self.exchange(child, place);
            place = child;
        }
        self.moves(place, MOVING, number(place));
    }

    fn earliest_child(&self, place: usize) -> Option<usize> {
        let first = place.checked_mul(CHILDREN)?.checked_add(1)?;
        let children = first..self.heap.len().min(first + CHILDREN);
        children.min_by_key(|child| self.instant(*child))
    }

    /// What is at `other` comes to `place`, where the one is that is on its way, which comes there.
    fn exchange(&mut self, other: usize, place: usize) {
        self.moves(other, number(other), number(place));
        self.heap.swap(other, place);
    }

    /// The place of the key that is at `at` in the heap is noted as `to`, after `from`.
    fn moves(&mut self, at: usize, from: u32, to: u32) {
        let Some((_, key)) = self.heap.get(at) else { return };
        if let Some(noted) = self.places.find_mut(self.hasher.hash_one(key), |it| *it == from) {
            *noted = to;
        }
    }
}

/// A place as it is noted. There are fewer keys than this could count: each takes more than a byte.
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(MOVING)
}

const fn index(place: u32) -> usize {
    place as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use trainjob_core::facts::ObjectKey;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_taken_in_the_order_of_what_they_were_armed_with_last(
            turns in prop::collection::vec((0_u8..40, prop::option::of(0_u8..100), 0_u8..100), 0..400),
        ) {
            let (mut timers, mut expected) = (Timers::default(), BTreeMap::new());
            let key = |number: u8| ObjectKey::new("ns", number.to_string());
            for (number, at, now) in turns {
                let before = expected.get(&number).copied();
                let is_earliest = timers.set(&key(number), at);
                match at {
                    Some(at) => expected.insert(number, at),
                    None => expected.remove(&number),
                };
                let earliest = expected.values().min().copied();
                prop_assert_eq!(timers.earliest(), earliest);
                if at.is_none() || at == before {
                    prop_assert!(!is_earliest);
                } else if expected.iter().all(|(it, other)| *it == number || at < Some(*other)) {
                    prop_assert!(is_earliest);
                }
                if now < 10 {
                    let taken = timers.take(now);
                    let due = earliest.filter(|at| *at <= now);
                    prop_assert_eq!(taken.is_some(), due.is_some());
                    let taken = taken.and_then(|key| key.name.parse::<u8>().ok());
                    prop_assert_eq!(taken.and_then(|number| expected.remove(&number)), due);
                }
                prop_assert_eq!(timers.len(), expected.len());
                for (number, at) in &expected {
                    prop_assert_eq!(timers.at(&key(*number)), Some(*at));
                }
            }
        }
    }

    #[test]
    fn room_grows_little_by_little() {
        let mut timers = Timers::default();
        for number in 0..1_000 {
            timers.set(&ObjectKey::new("ns", number.to_string()), Some(number));
        }
        assert!(timers.heap.capacity() < 1_200, "{}", timers.heap.capacity());
    }
}
