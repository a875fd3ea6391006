//! Where work waits, whatever the work is.
//!
//! A controller names its priorities in one type and says how they share turns and places. The queue, the places for
//! requests and the limit on requests of `trainjob-engine` go by that, and by nothing else.

use std::{fmt::Debug, hash::Hash, sync::Arc};

use trainjob_api::time::Timestamp;

use crate::facts::ObjectKey;

/// The priorities of a controller; the lesser goes first.
pub trait QueuePriority: Copy + Ord + Hash + Debug + Send + Sync + 'static {
    /// All of them, the first first; at least one.
    const ALL: &'static [Self];
    /// What events are sent with.
    const EVENTS: Self;

    /// Which of them a turn begins with; the others follow in their order. There are any number of turns.
    fn begins(turn: u8) -> Self;

    /// How many of so many places for requests the other priorities do not get.
    fn kept(self, places: usize) -> usize;

    /// The order of the priorities at a turn.
    fn order(turn: u8) -> impl Iterator<Item = Self> {
        let first = Self::begins(turn);
        let others = Self::ALL.iter().copied().filter(move |other| *other != first);
        [first].into_iter().chain(others)
    }

    /// The others.
    fn others(self) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |other| *other != self)
    }
}

/// What is worked on. Keys of one namespace take turns with those of others.
pub trait QueueKey: Clone + Ord + Hash + Debug + Send + Sync + 'static {
    /// The namespace of its object.
    fn namespace(&self) -> &Arc<str>;
}

impl QueueKey for ObjectKey {
    fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }
}

/// Where a pass waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition<P> {
    /// The priority.
    pub priority: P,
    /// Since when the pass has been due; within a priority the earlier goes first.
    pub due: Timestamp,
}

/// From when on a key is worked on by a process that takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// As soon as it leads, though other objects may still have to be listed: what is known of this one is enough.
    Early,
    /// When everything is listed.
    First,
    /// A few at a time behind all that waits: it most likely needs nothing.
    Last,
}
