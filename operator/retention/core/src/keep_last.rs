//! The newest objects of each group, which a rule with `keepLast` keeps (`docs/retention.md`, R21).
//!
//! Objects of one namespace and with the same values of some labels make a group, in which they are ranked by finish time,
//! creation and UID. What is kept for another reason takes no place in it, but is ranked all the same when that reason
//! ends.
//!
//! An object is dispensable from the moment at which so many newer ones had finished as are kept. One that was held counts
//! from the end of its hold: that others are due since then, and not since long ago, is what time did. One of a group is
//! deleted at a time: what the watch has not shown yet may have changed the ranks. The others wait for their turn, and the
//! group knows which these are, so that somebody looks at the next of them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use trainjob_api::time::Timestamp;

use crate::{
    policy::{GroupValues, KeepLast},
    uid::Uid,
};

/// Which group of which rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GroupKey {
    /// The policy.
    pub policy: Uid,
    /// The name of the rule.
    pub rule: Arc<str>,
    /// The namespace.
    pub namespace: Arc<str>,
    /// The values of the labels.
    pub values: GroupValues,
}

/// Where an object stands in a group; the greater is the newer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// When it finished.
    pub finished: Timestamp,
    /// When it was created.
    pub created: Timestamp,
    /// What tells objects of the same second apart.
    pub uid: Uid,
}

/// An object as a candidate for a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The group.
    pub group: GroupKey,
    /// Its rank there.
    pub rank: Rank,
    /// From when on it counts for others: its finish, or the end of its hold.
    pub counts_from: Timestamp,
    /// Whether it takes a place, so that others can be dispensed with. What is kept for another reason does not.
    pub takes_place: bool,
}

/// The objects that take places in a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// The oldest first. Objects come at the one end and go at the other.
    ranks: VecDeque<Rank>,
    /// From when on those count that were held beyond their finish.
    held: BTreeMap<Rank, Timestamp>,
    /// The object whose deletion was sent and has not been seen.
    deleting: Option<Uid>,
    /// The objects that could go if it were their turn.
    waiting: BTreeSet<Rank>,
}

impl Group {
    /// Since when an object of this rank is dispensable: when the last of as many newer ones counted as are kept. `None` if
    /// there are not as many.
    #[must_use]
    pub fn dispensable_since(&self, rank: &Rank, count: u16) -> Option<Timestamp> {
        let not_newer = self.ranks.partition_point(|other| other <= rank);
        let last_needed = usize::from(count).checked_sub(1)?;
        if self.held.is_empty() {
            return self.ranks.get(not_newer.checked_add(last_needed)?).map(|rank| rank.finished);
        }
        // Those that were not held are in the order in which they count, so no more of them matter than are kept.
        let newer = self.ranks.range(not_newer..).filter(|newer| !self.held.contains_key(newer));
        let finishes = newer.take(usize::from(count)).map(|newer| newer.finished);
        let held = self.held.range((Bound::Excluded(rank), Bound::Unbounded));
        let mut instants: Vec<_> = finishes.chain(held.map(|(_, until)| *until)).collect();
        instants.sort_unstable();
        instants.get(last_needed).copied()
    }

    /// Whether it is another object's turn to go.
    #[must_use]
    pub fn is_deleting_other_than(&self, uid: &Uid) -> bool {
        self.deleting.as_ref().is_some_and(|deleting| deleting != uid)
    }

    /// The objects at the limit: the newest that is dispensable and the oldest that is kept. Of all that stay, these alone can
    /// have passed it when one has come or gone.
    pub fn at_limit(&self, count: u16) -> impl Iterator<Item = &Uid> {
        let dispensable = self.ranks.len().saturating_sub(usize::from(count));
        let at_limit = self.ranks.iter().take(dispensable.saturating_add(1));
        at_limit.skip(dispensable.saturating_sub(1)).map(|rank| &rank.uid)
    }

    /// The objects that wait for their turn, the oldest first; none while another one's deletion is under way.
    pub fn next_in_turn(&self) -> impl Iterator<Item = &Uid> {
        let waiting = self.waiting.iter().filter(|_| self.deleting.is_none());
        waiting.map(|rank| &rank.uid)
    }

    fn add(&mut self, rank: Rank, counts_from: Timestamp) {
        if counts_from > rank.finished {
            self.held.insert(rank.clone(), counts_from);
        }
        if let Err(index) = self.ranks.binary_search(&rank) {
            self.ranks.insert(index, rank);
        }
    }

    fn remove(&mut self, rank: &Rank) {
        self.held.remove(rank);
        self.waiting.remove(rank);
        if let Ok(index) = self.ranks.binary_search(rank) {
            self.ranks.remove(index);
        }
    }

    fn is_unused(&self) -> bool {
        self.ranks.is_empty() && self.deleting.is_none() && self.waiting.is_empty()
    }
}

/// All groups of the policies of one kind.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    groups: HashMap<GroupKey, Group>,
    changes: u32,
}

impl Groups {
    /// The group of this key, if anything takes a place in it.
    #[must_use]
    pub fn get(&self, key: &GroupKey) -> Option<&Group> {
        self.groups.get(key)
    }

    /// How often an object has entered or left: as long as this stays, no rank has changed.
    #[must_use]
    pub const fn changes(&self) -> u32 {
        self.changes
    }

    /// Notes where an object stands now. Where it stood before is to be [left](Self::leave) first if its rank or its group
    /// has changed.
    pub fn enter(&mut self, candidate: &Candidate) {
        self.changes = self.changes.wrapping_add(1);
        if candidate.takes_place {
            let group = self.groups.entry(candidate.group.clone()).or_default();
            group.add(candidate.rank.clone(), candidate.counts_from);
        } else {
            self.change(&candidate.group, |group| group.remove(&candidate.rank));
        }
    }

    /// Notes that an object does not stand there any more: it is gone, is going, or has changed. If it was its turn to go,
    /// it is the next one's.
    pub fn leave(&mut self, candidate: &Candidate) {
        self.changes = self.changes.wrapping_add(1);
        self.change(&candidate.group, |group| {
            group.remove(&candidate.rank);
            group.deleting.take_if(|deleting| *deleting == candidate.rank.uid);
        });
    }

    /// Notes that the deletion of an object is being sent. One that takes no place leaves none, so nobody waits for it: it may
    /// stay for long, for a finalizer.
    pub fn begin_deletion(&mut self, candidate: &Candidate) {
        if !candidate.takes_place {
            return;
        }
        let group = self.groups.entry(candidate.group.clone()).or_default();
        group.deleting = Some(candidate.rank.uid.clone());
    }

    /// Notes whether an object could go if it were its turn.
    pub fn wait_for_turn(&mut self, candidate: &Candidate, waits: bool) {
        self.change(&candidate.group, |group| {
            if waits {
                group.waiting.insert(candidate.rank.clone());
            } else {
                group.waiting.remove(&candidate.rank);
            }
        });
    }

    /// Notes that a deletion was refused or not sent, so that it does not hold up others.
    pub fn end_deletion(&mut self, candidate: &Candidate) {
        self.change(&candidate.group, |group| {
            group.deleting.take_if(|deleting| *deleting == candidate.rank.uid);
        });
    }

    fn change(&mut self, key: &GroupKey, change: impl FnOnce(&mut Group)) {
        let Some(group) = self.groups.get_mut(key) else { return };
        change(group);
        if group.is_unused() {
            self.groups.remove(key);
        }
    }
}

/// When an object is due by such a rule, as far as is known: since it is dispensable and old enough, or at the maximum
/// age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptUntil {
    /// When its rank lets it go.
    pub(crate) dispensable: Option<Timestamp>,
    /// When its age does.
    pub(crate) too_old: Option<Timestamp>,
}

impl KeptUntil {
    /// For an object of this start and rank.
    pub(crate) fn of(
        rule: &KeepLast,
        group: Option<&Group>,
        rank: &Rank,
        start: Timestamp,
    ) -> Self {
        let since = group.and_then(|group| group.dispensable_since(rank, rule.count()));
        let old_enough = start.plus(rule.minimum_age().get());
        Self {
            dispensable: since.map(|since| since.max(old_enough)),
            too_old: rule.maximum_age().map(|age| start.plus(age.get())),
        }
    }
}

#[cfg(test)]
mod tests;
