//! Loops: a TTL deletes an object, somebody makes it again, and so on.
//!
//! A program that keeps a cluster as a repository or an owner says creates what is missing. If a TTL deletes what such a
//! program keeps, a job is trained again and again. Nobody is kept from that, because the TTL is the user's wish; but
//! the third time within an hour its users are told. The rule is T12 of `docs/semantics.md`.
//!
//! The memory is of this process alone and bounded. Names and UIDs are kept as hashes, so ten thousand take less than a
//! megabyte. When it is full, names that nobody has made again are forgotten first, so that a storm of deletions hides no
//! loop.

mod origin;
#[cfg(test)]
mod tests;

use std::{
    cmp::Ordering,
    collections::HashMap,
    hash::{BuildHasher, Hash, RandomState},
};

use trainjob_api::time::Timestamp;

pub use self::origin::Origin;

/// A job counts as made again if it was created within so many seconds of the deletion.
const MADE_AGAIN_WITHIN: i64 = 600;
/// So many deletions of one name are a loop, each followed by a creation.
const TIMES: usize = 3;
/// They are, if all were within so many seconds.
const LOOP_WITHIN: i64 = 3_600;
/// How many names are remembered.
const MOST_NAMES: usize = 10_000;
/// How many are forgotten when there are more, so that they need not be searched for each one.
const FORGOTTEN_AT_ONCE: usize = MOST_NAMES / 10;

/// The names that a TTL has deleted lately.
#[derive(Debug, Default)]
pub struct Recreations {
    names: HashMap<u64, Name>,
    hasher: RandomState,
}

/// What became of the jobs of one name.
#[derive(Debug, Clone)]
struct Name {
    /// Hash of the UID of the job that was deleted last.
    uid: u64,
    /// When that was.
    deleted: Timestamp,
    /// Whether a job was made since.
    is_made_again: bool,
    /// The last deletions after which one was made again; the newest last.
    cycles: Vec<Timestamp>,
}

impl Recreations {
    /// The API server has accepted at `now` that a TTL deletes the object of this name and UID.
    pub fn deleted(&mut self, key: &impl Hash, uid: &(impl Hash + ?Sized), now: Timestamp) {
        let (key, uid) = (self.hasher.hash_one(key), self.hasher.hash_one(uid));
        if let Some(name) = self.names.get_mut(&key) {
            (name.uid, name.deleted, name.is_made_again) = (uid, now, false);
            return;
        }
        if self.names.len() >= MOST_NAMES {
            self.make_room(now);
        }
        let name = Name { uid, deleted: now, is_made_again: false, cycles: Vec::new() };
        self.names.insert(key, name);
    }

    /// An object of this name and UID exists, created at `created`. Whether it closes a loop; once for each object.
    pub fn seen(
        &mut self,
        key: &impl Hash,
        uid: &(impl Hash + ?Sized),
        created: Timestamp,
    ) -> bool {
        let (key, uid) = (self.hasher.hash_one(key), self.hasher.hash_one(uid));
        let Some(name) = self.names.get_mut(&key) else { return false };
        if name.is_made_again || name.uid == uid {
            return false;
        }
        name.is_made_again = true;
        if created.since(name.deleted) > MADE_AGAIN_WITHIN {
            return false;
        }
        if name.cycles.len() == TIMES {
            name.cycles.remove(0);
        }
        name.cycles.push(name.deleted);
        name.loops(name.deleted)
    }

    /// How many names loop at `now`: three deletions within the last hour were each followed by a creation.
    #[must_use]
    pub fn loops(&self, now: Timestamp) -> usize {
        self.names.values().filter(|name| name.loops(now)).count()
    }

    /// Whether this name loops at `now`.
    #[must_use]
    pub fn is_loop(&self, key: &impl Hash, now: Timestamp) -> bool {
        self.names.get(&self.hasher.hash_one(key)).is_some_and(|name| name.loops(now))
    }

    /// Forgets the names that matter no more, and if there are none, those that say least.
    fn make_room(&mut self, now: Timestamp) {
        self.names.retain(|_, name| name.matters(now));
        if self.names.len() < MOST_NAMES {
            return;
        }
        let mut ranks: Vec<_> = self.names.values().map(Name::rank).collect();
        let (least, first_kept, _) = ranks.select_nth_unstable(FORGOTTEN_AT_ONCE);
        let first_kept = *first_kept;
        // Of those that say as much as the first that is kept, some are forgotten too.
        let mut ties = least.iter().filter(|rank| **rank == first_kept).count();
        self.names.retain(|_, name| match name.rank().cmp(&first_kept) {
            Ordering::Less => false,
            Ordering::Equal if ties > 0 => {
                ties -= 1;
                false
            }
            Ordering::Equal | Ordering::Greater => true,
        });
    }
}

impl Name {
    /// Whether the oldest of the deletions is within the hour before `now`.
    fn loops(&self, now: Timestamp) -> bool {
        let first = self.cycles.first().filter(|_| self.cycles.len() == TIMES);
        first.is_some_and(|at| now.since(*at) <= LOOP_WITHIN)
    }

    /// Whether a later creation or deletion can make it a part of a loop.
    fn matters(&self, now: Timestamp) -> bool {
        let may_be_made_again = !self.is_made_again && now.since(self.deleted) <= MADE_AGAIN_WITHIN;
        may_be_made_again || self.cycles.last().is_some_and(|at| now.since(*at) <= LOOP_WITHIN)
    }

    /// The less, the sooner it is forgotten: how often it was made again, and when it was deleted last.
    fn rank(&self) -> (usize, Timestamp) {
        (self.cycles.len(), self.deleted)
    }
}
