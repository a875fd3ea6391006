//! Whose turn it is in a group of which one object is deleted at a time (`docs/retention.md`, R21).
//!
//! While the deletion of one is under way, the others that are looked at wait for their turn, and nothing else has them looked
//! at again: neither time nor an edit lets them go. So whoever could have had the turn and does not take it passes it on.

use std::time::Duration;

use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::{
    breaker::Hold,
    keep_last::{Group, GroupKey},
    plan::{Act, Plan, State},
};

use super::{kind::Kind, object::Progress, step::Step};

/// So many of the objects that wait for their turn in a group are looked at when it is over for another one. If none of them
/// can go, the others are looked at after them.
const LOOKED_AT: usize = 8;

/// What a look at an object means for the turns in its groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It takes the turn: its deletion is sent.
    Takes,
    /// It could go if it were its turn.
    Waits,
    /// It does not go, for a reason of its own. Others of the group may.
    PassesOn,
    /// It is next, or what keeps it keeps the others, too. It is looked at again, and they are then.
    Stays,
}

impl Turn {
    /// That of an object whose plan deletes nothing now, or whose policy pauses.
    pub(super) const fn without_deletion(plan: &Plan<'_>, is_paused: bool) -> Self {
        if matches!((plan.state, plan.act), (State::Due, Act::Nothing)) {
            Self::Waits
        } else if is_paused {
            Self::Stays
        } else {
            Self::PassesOn
        }
    }

    /// That of an object before its deletion, which the breaker may hold up, or its own failures.
    pub(super) const fn before(
        deletion: &Step,
        may: Option<Result<(), Hold>>,
        rests: Option<Duration>,
    ) -> Self {
        let is_kept_alone = match may {
            None | Some(Err(Hold::NotStored | Hold::Tripped)) => false,
            Some(Err(Hold::NotDue | Hold::Waiting)) => true,
            Some(Ok(())) => rests.is_some(),
        };
        // Pods go whosever turn it is.
        if is_kept_alone || matches!(deletion, Step::DeletePods(_)) {
            Self::PassesOn
        } else {
            Self::Stays
        }
    }
}

impl Kind {
    /// The objects of a group that have to be looked at when another one has come or gone: they may be able to go now, or are
    /// not dispensable any more and have to know when they are too old.
    pub(super) fn concerned(&self, key: &GroupKey, count: u16) -> Vec<ObjectKey> {
        let at_limit = self.groups.get(key).into_iter().flat_map(|group| group.at_limit(count));
        let mut concerned = self.named(at_limit);
        concerned.extend(self.next_in_turn(key));
        concerned
    }

    /// The objects of a group that may be able to go now that it is nobody's turn.
    pub(super) fn next_in_turn(&self, key: &GroupKey) -> Vec<ObjectKey> {
        let next = self.groups.get(key).into_iter().flat_map(Group::next_in_turn);
        self.named(next.take(LOOKED_AT))
    }

    /// Notes what a look at an object means for the turns in its groups. Those who are next are looked at with the next
    /// evaluation.
    pub(super) fn note_turn(&mut self, key: &ObjectKey, turn: Turn) {
        let Some(object) = self.objects.get(key) else { return };
        let is_being_deleted = turn == Turn::Takes || object.progress == Progress::Accepted;
        if object.places.is_empty() || is_being_deleted {
            return;
        }
        let groups = object.places.iter().map(|place| place.candidate.group.clone());
        let groups: Vec<_> = groups.collect();
        for place in &object.places {
            // A deletion that was planned may never have been sent.
            self.groups.end_deletion(&place.candidate);
            self.groups.wait_for_turn(&place.candidate, turn == Turn::Waits);
        }
        if turn == Turn::PassesOn {
            for group in groups {
                let next = self.next_in_turn(&group);
                self.stale.add_objects(next);
            }
        }
    }
}
