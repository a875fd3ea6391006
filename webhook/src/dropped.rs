//! What an update lacks and keeps: [`dropped_fields`] asked about the text of two objects.
//!
//! Nothing else of them needs to be read, so a job that cannot be read, or that the schema will refuse, loses
//! nothing either.

use trainjob_api::time::Timestamp;
use trainjob_core::admission::{
    dropped_fields::{self, Outcome, Update},
    lifecycle::FieldUpdates,
};

use crate::fields::Object;

pub(crate) const TTL: &str = "ttlSecondsAfterFinished";
pub(crate) const DEADLINE: &str = "activeDeadlineSeconds";

/// What becomes of a change from `old` to `new` by somebody who manages fields under this name.
pub(crate) fn keep(
    old: &Object<'_>,
    new: &Object<'_>,
    manager: &str,
    updates: FieldUpdates,
    now: Timestamp,
) -> Outcome {
    let lacks = |name| old.says(name).is_some() && new.says(name).is_none();
    let wish = new.remove_fields();
    // Most updates stop here. One that takes the whole spec away is refused.
    if new.spec.is_none() || !(lacks(TTL) || lacks(DEADLINE) || wish.is_some()) {
        return Outcome::default();
    }
    let (known_wish, known_managers, managers) =
        (old.remove_fields(), old.managers(), new.managers());
    let update = Update {
        stored: dropped_fields::Object {
            deadline: old.says(DEADLINE),
            ttl: old.says(TTL),
            remove_fields: known_wish.as_deref(),
            managers: &known_managers,
        },
        requested: dropped_fields::Object {
            deadline: new.says(DEADLINE),
            ttl: new.says(TTL),
            remove_fields: wish.as_deref(),
            managers: &managers,
        },
        manager,
        updates,
        now,
    };
    dropped_fields::keep(&update)
}
