//! The breaker: what stops a mass deletion that nobody meant.
//!
//! An administrator is told this:
//!
//! 1. A policy that is new, edited or set to `Enforce` deletes nothing if more than `maxCount` objects are due at once: it
//!    *trips*, and waits for you.
//! 2. Objects that any other edit makes due, of labels, annotations, a namespace or another policy, wait for two minutes;
//!    if more than `maxCount` wait in one namespace, the policy trips in that namespace, and if more than ten times
//!    `maxCount` wait in all, where no namespace counts for more than `maxCount`, it trips everywhere.
//! 3. What becomes due because time passes, also while the engine was down, or because it or its owner has just finished,
//!    trips nothing, however much it is.
//! 4. Where a policy has tripped it deletes nothing, and its status shows how many objects wait, in which namespaces, and
//!    an id.
//! 5. The annotation `lifecycle.trainjob.dev/acknowledge-trip` with that id lets that number of objects and a tenth more
//!    go, once; an edit that leaves no more than `maxCount` waiting ends the trip, too.
//!
//! The rules are R40 to R43 of `docs/retention.md`, and the limits of what they can tell are there, too.
//!
//! # How it works
//!
//! A [`Breaker`] knows all objects that are due under one policy. Each of them is *expected*, or *waits* because something
//! else than time made it due. That is decided when the object becomes due, by one comparison: whether it was due before
//! everything was looked at last. Nothing else is remembered: how many wait is counted anew for each judgement, and trips
//! follow from that.
//!
//! After a restart the same comparison is made with what is stored. So `enforcedThrough` is not just the time of the last
//! look: it stays behind at the due instant of what was expected and is still there. Then no expected object waits after a
//! restart. In return, an edit that no leader sees is not noticed for objects that are due after that instant.
//!
//! Owners are not watched but asked for, so the end of one is noticed up to half an hour late. An answer that brings it is
//! news like an end that the watch brings. Before there is any answer nobody knows whether an object is due: under a new
//! digest it counts as due, and otherwise it is not judged before.
//!
//! # What the program calls, and when
//!
//! | event | call |
//! |---|---|
//! | the replica becomes the leader, a policy is created or set to `Enforce`, or the kind was listed anew (R48) | [`Breaker::start`] with what the status stores ([`Record::read`]) and with everything due; until then the policy deletes nothing |
//! | a policy is edited so that its digest changes, or its status shows that another leader wrote ([`Breaker::is_outdated`]) | [`Breaker::start_again`], likewise |
//! | a policy is edited otherwise | [`Breaker::update`] |
//! | a policy is set to `Audit` or deleted | the breaker is dropped, and the status is [cleared](Record::clear) |
//! | an object becomes due, for whatever cause | [`Breaker::observe`] with [`DueObject::of`] its plan |
//! | an object is not due any more, is gone, or has another policy | [`Breaker::forget`] |
//! | a deletion is about to be sent | [`Breaker::may_delete`] |
//! | a deletion was accepted | nothing; when the watch shows it, [`Breaker::forget`] |
//! | a deletion failed | nothing: the object stays expected |
//! | a second or so after any of these, with a new acknowledgement, and [when the last verdict says](Verdict::next) | [`Breaker::judge`] |
//! | all that was due until an instant has been observed, with live watches | [`Breaker::looked`] |
//! | a minute has passed, or a judgement made a new record [urgent](Record::is_urgent), or [deletions wait for it](Breaker::awaits_storage) | [`Breaker::record`], which is [written](Record::write) with the version of the policy as a precondition; then [`Breaker::stored`] |
//! | the clock jumps | [`Breaker::step_clock`] |

mod judge;
mod ledger;
mod limits;
mod object;
mod record;
mod standing;
mod state;
mod status;
#[cfg(test)]
mod tests;

pub use self::{
    judge::Verdict,
    ledger::WaitingObjects,
    limits::{CLOCK_AHEAD, OWNER_ASKED_WITHIN, PATIENCE, SETTLING, SLACK, STORE_INTERVAL},
    object::{DueObject, Hold, News, OwnerEnd, Stage},
    record::{Reason, Record, Scope, Trip, TripId},
    standing::{Looked, Standing},
    state::{Breaker, PolicyVersion},
};
