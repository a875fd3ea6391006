//! What is worked on, and in which order.

use std::sync::Arc;

use trainjob_api::time::Timestamp;
use trainjob_core::{
    facts::ObjectKey,
    queue_position::{self, QueueKey, QueuePriority},
};

/// How long something is due before it is backlog, in seconds (`docs/retention.md`, R38).
const SCHEDULED: i64 = 60;

/// Of so many turns, one begins with the backlog even when there is other work: it could starve otherwise.
const TURNS_PER_BACKLOG: u8 = 8;

/// One of the kinds that the configuration names, by its place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId(pub usize);

/// An object of a target kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The kind.
    pub target: TargetId,
    /// Namespace and name.
    pub object: ObjectKey,
}

impl QueueKey for Key {
    fn namespace(&self) -> &Arc<str> {
        &self.object.namespace
    }
}

/// What goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// What has been due for a minute at most, and what has to be looked at.
    Scheduled,
    /// What has been due for longer.
    Backlog,
}

impl QueuePriority for Priority {
    const ALL: &'static [Self] = &[Self::Scheduled, Self::Backlog];
    const EVENTS: Self = Self::Backlog;

    fn begins(turn: u8) -> Self {
        if turn.is_multiple_of(TURNS_PER_BACKLOG) { Self::Backlog } else { Self::Scheduled }
    }

    fn kept(self, places: usize) -> usize {
        match self {
            Self::Scheduled => (places / 4).max(1),
            Self::Backlog => 1,
        }
    }
}

/// Where a pass waits.
pub type Position = queue_position::QueuePosition<Priority>;

/// The position of a pass over an object that is due then; `None`: over one that is not due. Before the time is known
/// nothing is backlog.
#[must_use]
pub fn position(due: Option<Timestamp>, now: Option<Timestamp>) -> Position {
    let is_backlog = due.zip(now).is_some_and(|(due, now)| due < scheduled_since(now));
    let priority = if is_backlog { Priority::Backlog } else { Priority::Scheduled };
    Position { priority, due: due.unwrap_or(Timestamp(i64::MAX)) }
}

/// What is due since this instant or later is not backlog yet.
#[must_use]
pub const fn scheduled_since(now: Timestamp) -> Timestamp {
    now.plus(-SCHEDULED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_been_due_for_more_than_a_minute_is_backlog() {
        let at = |seconds| Some(Timestamp(seconds));
        for (due, now, priority) in [
            (at(100), at(90), Priority::Scheduled),
            (at(100), at(100), Priority::Scheduled),
            (at(100), at(160), Priority::Scheduled),
            (at(100), at(161), Priority::Backlog),
            (None, at(161), Priority::Scheduled),
            (at(100), None, Priority::Scheduled),
        ] {
            assert_eq!(position(due, now).priority, priority, "{due:?} {now:?}");
        }
        assert!(position(at(100), at(100)) < position(at(101), at(100)));
        assert!(position(at(100), at(100)) < position(None, at(100)), "what is due goes first");
    }

    #[test]
    fn the_backlog_begins_one_turn_in_eight() {
        let begun = (0..64).filter(|turn| Priority::begins(*turn) == Priority::Backlog);
        assert_eq!(begun.count(), 8);
    }
}
