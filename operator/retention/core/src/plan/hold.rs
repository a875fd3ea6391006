//! Holds: an object asks not to be deleted before an instant (`docs/retention.md`, R32).
//!
//! A hold reaches so far beyond due and no further, so it ends by itself, and nothing but facts tells when.

use trainjob_api::time::Timestamp;

use super::due::{Delay, Due, HoldEnd};
use crate::{
    policies::Governed,
    policy::Annotation,
    seconds::Seconds,
    wish::{HoldWish, TtlWish},
};

/// What an object asks for. A TTL that cannot be read, where the object may bring one, asks for as much as a hold that
/// cannot be read.
pub(super) fn wish(governed: &Governed<'_, '_>) -> Option<HoldWish> {
    let wishes = governed.object.wishes;
    let unreadable = wishes.ttl == Some(TtlWish::Unreadable)
        && governed.policy.annotation == Annotation::Allowed;
    if unreadable { Some(HoldWish::Unreadable) } else { wishes.hold }
}

/// How far holds reach: the least that a policy says which governs or bounds the object.
pub(super) fn maximum(governed: &Governed<'_, '_>) -> Seconds {
    let own = governed.policy.maximum_hold;
    governed.bounds.maximum_hold().map_or(own, |maximum| maximum.min(own))
}

/// Whether the wish holds the object at `now`, however far it may reach.
pub(super) fn is_wished(governed: &Governed<'_, '_>, now: Timestamp) -> bool {
    maximum(governed) > Seconds::ZERO
        && wish(governed).is_some_and(|wish| match wish {
            HoldWish::Until(end) => now < end,
            HoldWish::Unreadable => true,
        })
}

/// When the hold of the object ended, if it had any effect and is over at `now`.
pub(super) fn ended(governed: &Governed<'_, '_>, now: Timestamp) -> Option<Timestamp> {
    match wish(governed).filter(|_| maximum(governed) > Seconds::ZERO)? {
        HoldWish::Until(end) => Some(end).filter(|end| *end <= now),
        HoldWish::Unreadable => None,
    }
}

/// What is due, moved by a hold. Never to an earlier time.
pub(super) fn applied(due: Due, wish: Option<HoldWish>, maximum: Seconds) -> Due {
    let latest = due.at.plus(maximum.get());
    let (at, end) = match wish {
        None => return due,
        Some(HoldWish::Until(end)) if end <= latest => (end, HoldEnd::AsWished),
        Some(HoldWish::Until(_)) => (latest, HoldEnd::Capped),
        Some(HoldWish::Unreadable) => (latest, HoldEnd::Unreadable),
    };
    if at > due.at { Due { at, delay: Some(Delay::Hold(end)), ..due } } else { due }
}
