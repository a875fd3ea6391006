//! The breaker: what stops a mass deletion that nobody meant.
//!
//! An administrator is told this:
//!
//! 1. A policy that is new, edited or set to `Enforce` deletes nothing if more than `maxCount` objects are due at once: it
//!    *trips*, and waits for you.
//! 2. An object that any other edit makes due, of itself, its namespace or another policy, waits for two minutes, and if
//!    more than `maxCount` wait in one namespace, the policy trips there and nowhere else, unless it is about many
//!    namespaces: with more than ten times `maxCount` in all (no namespace counts for more than `maxCount`), it trips as a
//!    whole.
//! 3. What becomes due because time passes, also while the engine was down, or because it just finished, is expected: it
//!    trips nothing, however much it is.
//! 4. Where a policy has tripped it deletes nothing at all, and its status shows how many objects wait, in which
//!    namespaces, and an id.
//! 5. The annotation `lifecycle.trainjob.dev/acknowledge-trip` with that id lets go that number and a tenth more, once; an
//!    edit that leaves no more than `maxCount` waiting ends the trip, too.
//!
//! # The rules
//!
//! These are R40 to R43 of `docs/retention.md`.
//!
//! **R40, what is stored.** A status stores four things together: `digest`; `enforcedThrough`, the instant until which
//! everything due was handed on under this digest; `backlog`, how many objects due more than 120 s before that were handed
//! on and are still there; and `trip`. `enforcedThrough` is the time of the start of a digest, and then the time, while the
//! policy enforces, its watches are live and what is due is looked at. It does not pass what has not been looked at. It
//! does not wait for what is queued, fails or is guarded: that is `backlog`. Stored are they once a minute, and at once if
//! `digest` or `trip` has changed, always with the `resourceVersion` that was read. After a start, an edit or an
//! acknowledgement nothing is deleted that rests on it before it is stored. So a leader that starts on an old version of
//! the policy is refused before it deletes anything.
//!
//! **R41, what is expected.** An object that becomes due is *expected* if it is due no more than 120 s before
//! `enforcedThrough`, or if the watch just brought its end. Otherwise an edit made it due, and it is *unexpected*. Expected
//! stays expected as long as it is due under the same policy, through any edit, failure or guard. At a start of the engine,
//! objects due earlier than that are the old backlog if they are no more than `backlog`; if they are at most `maxCount`
//! more, all of them wait for two minutes, and then go; if they are more, all of them are unexpected.
//!
//! **R42, what trips.** Under a digest that is not the stored one, or stored as audited, the policy trips if more than
//! `maxCount` objects are due. Otherwise an unexpected object waits for 120 s. Whenever more than `maxCount` wait in one
//! namespace, the policy trips in that namespace; whenever the sum over all namespaces, each counting `maxCount` at most, is
//! more than ten times `maxCount`, as a whole. A trip is counted anew, under a new id, when its objects have become too
//! many for an acknowledgement: at one, and otherwise after 120 s. A jump of the clock (R46), or an `enforcedThrough` over
//! 60 s in the future at a start, trips the policy as a whole with all that is due.
//!
//! **R43, what ends a trip.** An acknowledgement of the present id, if no more wait than the number of the trip and a tenth
//! of it (or `maxCount`, if that is more) in each of its namespaces. What waits is expected from then on. An id is never
//! used again. Without an acknowledgement a trip ends where no more than `maxCount` are left waiting, a jump of the clock
//! excepted; a new digest is judged by itself.
//!
//! # What this guarantees
//!
//! * Of the objects that are due when a digest comes into force, at most `maxCount` go without an acknowledgement.
//! * Of the objects that other edits make due (more than 120 s before `enforcedThrough`), at most `maxCount` are let go in
//!   any 120 s in a namespace under a policy, and ten times that in all namespaces, without an acknowledgement.
//! * A crash adds to that at most as many objects as left the backlog since the last store, a minute ago at most; none if
//!   there was no backlog. Edited objects can take the places of backlog that was deleted meanwhile, and nobody can tell.
//!   A start that finds up to `maxCount` more than that lets those go too, of whatever namespace, after 120 s.
//! * What an edit makes due during an outage cannot be told from what came due in it, if it is due after the outage began.
//!
//! # How it is used
//!
//! [`Breaker::start`] judges a policy when its digest or the process is new, from the stored [`Record`] and everything
//! due. While there is no breaker for a policy, it deletes nothing. From then on every object that becomes due gets a
//! [`Standing`], which is kept with it; [`Breaker::judge`] moves standings and trips; [`Breaker::may_delete`] is asked right
//! before each request. Nothing else is kept: trips follow from standings, and standings, after a restart, from the record.
//! The clock that stood still or jumped, live watches and rates are the caller's.

mod limits;
mod record;
mod standing;
mod state;
#[cfg(test)]
mod tests;
mod verdict;
mod waiting;

pub use self::{
    limits::{CLOCK_AHEAD, SETTLING, SLACK, STORE_INTERVAL},
    record::{Reason, Record, Scope, Trip, TripId},
    standing::{Arrival, Due, News, Standing},
    state::{Breaker, PolicyVersion, Start},
    verdict::{Hold, Verdict},
};
