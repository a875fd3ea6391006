//! Controller owners: who has to have finished, or to go instead (`docs/retention.md`, R23 to R26).
//!
//! An object's own wish, by annotation or its kind's TTL, waits for no owner. A rule is somebody else's wish, and an
//! unfinished owner makes a deleted child again, so a rule does. Where a deletion would make a job run again it waits for
//! the job, whoever wished it.

use trainjob_api::time::Timestamp;

use super::{
    answers::{FoundOwner, OwnerAnswer},
    state::State,
};
use crate::{
    facts::Owner,
    outcome::Bond,
    policies::Governed,
    policy::{Delete, Owned},
    wish::HoldWish,
};

/// What follows from the owner of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerStep {
    /// Nothing.
    Free,
    /// It has finished then, and the object goes no earlier.
    NotBefore(Timestamp),
    /// It goes instead, unless its own wish holds it.
    Instead(Option<HoldWish>),
    /// It has to be looked at.
    Ask,
    /// The object is kept, and counted as this.
    Kept(State),
}

/// How an object depends on its owner.
enum Relation {
    /// Not at all.
    None,
    /// It is kept because of it, and counted as this.
    Kept(State),
    /// It goes after it.
    After,
    /// It goes with it.
    With,
}

/// What follows from the owner of an object for a deletion that a rule wishes, or the object itself.
pub(super) fn step(
    governed: &Governed<'_, '_>,
    by_rule: bool,
    answer: Option<OwnerAnswer>,
) -> OwnerStep {
    match (relation(governed, by_rule), answer) {
        (Relation::Kept(state), _) => OwnerStep::Kept(state),
        (Relation::After | Relation::With, None) => OwnerStep::Ask,
        (Relation::None, _) | (Relation::After, Some(OwnerAnswer::Gone)) => OwnerStep::Free,
        (Relation::After, Some(OwnerAnswer::Found(owner))) => {
            owner.finished.map_or(OwnerStep::Kept(State::Owned), OwnerStep::NotBefore)
        }
        // Without it the garbage collector takes the object.
        (Relation::With, Some(OwnerAnswer::Gone)) => OwnerStep::Kept(State::Owned),
        (Relation::With, Some(OwnerAnswer::Found(owner))) => instead(governed, owner),
    }
}

fn instead(governed: &Governed<'_, '_>, owner: FoundOwner) -> OwnerStep {
    // What finished its Workload has not finished the job, which may be running (R26).
    let may_run = governed.finish.bond == Bond::UntilOwnerFinished && owner.finished.is_none();
    let is_owned = owner.owned && governed.policy.owned != Owned::Any;
    if owner.terminating {
        OwnerStep::Kept(State::Terminating)
    } else if may_run || is_owned {
        OwnerStep::Kept(State::Owned)
    } else {
        OwnerStep::Instead(owner.hold)
    }
}

fn relation(governed: &Governed<'_, '_>, by_rule: bool) -> Relation {
    let (delete, bond) = (governed.decide.delete(), governed.finish.bond);
    match (delete, bond, &governed.object.owner, governed.policy.owned) {
        (Delete::Owner, _, Owner::Controller(_), _) => Relation::With,
        (Delete::Owner, _, Owner::None | Owner::Others, _)
        | (Delete::Object, Bond::OnlyWithOwner, _, _)
        | (Delete::Object, Bond::UntilOwnerFinished, Owner::Others, _) => {
            Relation::Kept(State::NeedsOwner)
        }
        (Delete::Object, _, Owner::Controller(_), Owned::Skip) if by_rule => {
            Relation::Kept(State::Owned)
        }
        (Delete::Object, Bond::UntilOwnerFinished, Owner::Controller(_), _) => Relation::After,
        (Delete::Object, Bond::None, Owner::Controller(_), Owned::AfterOwner) if by_rule => {
            Relation::After
        }
        (Delete::Object, _, _, _) => Relation::None,
    }
}
