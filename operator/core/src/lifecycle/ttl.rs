//! Time to live: when a finished TrainJob may be deleted.
//!
//! A finished job lives for `ttlSecondsAfterFinished` more seconds, counted from the instant its
//! terminal condition became true. A [hold](super::hold) delays its deletion further. The rules are T1–T11 of
//! `docs/semantics.md`; their sources are KEP-2899 (the field) and KEP-592 (the algorithm).
//!
//! The decision is one question: whether an instant [has come](Now::has_come). Everything that makes deletion safe (the
//! preconditions on UID and resourceVersion, the retries, the priority it waits in) belongs to whoever
//! carries it out. Nothing here is particular to TrainJobs.

use trainjob_api::{lifecycle::v1alpha1::hold::HoldWish, time::Timestamp};

use super::hold::{self, Hold};
use crate::now::Now;

/// What the TTL rule needs to know of an object, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// When the object finished; `None` while it is unfinished.
    pub finished_at: Option<Timestamp>,
    /// Its TTL, in seconds; `None` means it is kept for ever.
    pub ttl: Option<u32>,
    /// The hold that it asks for.
    pub hold: Option<HoldWish>,
    /// How far a hold may reach beyond the TTL, in seconds; 0 means that there are no holds.
    pub maximum_hold: u32,
    /// Why the rule must leave it alone, if it must.
    pub exemption: Option<Exemption>,
}

/// Why a finished object with a TTL is left alone for now (T1, T9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exemption {
    /// `managedBy` names another controller.
    ManagedElsewhere,
    /// A MultiKueue copy: deleting it before its status is mirrored would train it again.
    RemoteCopy,
    /// It has a `deletionTimestamp` already.
    Terminating,
    /// Its deadline failed it and its Pods are not gone yet: the object is the only record of that.
    AwaitingRelease,
}

/// What the TTL asks for at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, until something about the object changes.
    Keep,
    /// Nothing yet; ask again at `due`.
    Wait {
        /// When the TTL will have passed.
        due: Timestamp,
    },
    /// Nothing yet, although the TTL has passed; ask again when the hold ends.
    Held {
        /// When the TTL had passed.
        since: Timestamp,
        /// The hold.
        hold: Hold,
    },
    /// Delete now.
    Delete {
        /// When that became possible; lateness is measured from here.
        due: Timestamp,
    },
}

impl Subject {
    /// When the TTL of a finished object ends, whatever holds it.
    fn ttl_end(&self) -> Option<Timestamp> {
        Some(self.finished_at?.plus(i64::from(self.ttl?)))
    }

    /// When the object is due to be deleted, unless it is [exempt](Exemption); `None` means never, as far as it is
    /// known now.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        let end = self.ttl_end()?;
        Some(hold::of(self.hold, end, self.maximum_hold).map_or(end, |hold| hold.until))
    }
}

/// Decides what an object's TTL asks for at `now`.
///
/// Total: every input has an answer, a TTL of 0 and one of 136 years included.
///
/// ```
/// use trainjob_api::time::Timestamp;
/// use trainjob_core::{
///     Now,
///     lifecycle::ttl::{Decision, Exemption, Subject, decide},
/// };
///
/// let (finished_at, ttl) = (Some(Timestamp(1_000)), Some(60));
/// let finished = Subject { finished_at, ttl, hold: None, maximum_hold: 0, exemption: None };
/// let due = Timestamp(1_060);
/// assert_eq!(decide(&finished, Now::at(Timestamp(1_059))), Decision::Wait { due });
/// assert_eq!(decide(&finished, Now::at(due)), Decision::Delete { due });
///
/// let unreleased = Subject { exemption: Some(Exemption::AwaitingRelease), ..finished };
/// assert_eq!(decide(&unreleased, Now::at(due)), Decision::Keep);
/// ```
#[must_use]
pub fn decide(object: &Subject, now: Now) -> Decision {
    let (Some(end), None) = (object.ttl_end(), object.exemption) else {
        return Decision::Keep;
    };
    if !now.has_come(end) {
        return Decision::Wait { due: end };
    }
    match hold::of(object.hold, end, object.maximum_hold) {
        Some(hold) if !now.has_come(hold.until) => Decision::Held { since: end, hold },
        hold => Decision::Delete { due: hold.map_or(end, |hold| hold.until) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINISHED: Timestamp = Timestamp(1_000);

    const fn finished_with_ttl(ttl: u32) -> Subject {
        let (finished_at, ttl) = (Some(FINISHED), Some(ttl));
        Subject { finished_at, ttl, hold: None, maximum_hold: 500, exemption: None }
    }

    #[test]
    fn a_job_is_deleted_from_the_second_its_ttl_has_passed_and_never_before() {
        let due = Timestamp(1_060);
        for (now, expected) in [
            (1_000, Decision::Wait { due }),
            (1_059, Decision::Wait { due }),
            (1_060, Decision::Delete { due }),
            (9_999, Decision::Delete { due }),
        ] {
            assert_eq!(
                decide(&finished_with_ttl(60), Now::at(Timestamp(now))),
                expected,
                "at {now}"
            );
        }
    }

    #[test]
    fn a_ttl_of_zero_is_due_at_once() {
        let now = Now::at(FINISHED);
        assert_eq!(decide(&finished_with_ttl(0), now), Decision::Delete { due: FINISHED });
    }

    #[test]
    fn a_hold_delays_the_deletion_and_ends_by_itself() {
        let (since, until) = (Timestamp(1_060), Timestamp(1_100));
        let held = Decision::Held { since, hold: Hold { until, end: hold::End::AsWished } };
        let job = Subject { hold: Some(HoldWish::Until(until)), ..finished_with_ttl(60) };
        assert_eq!(job.due(), Some(Timestamp(1_100)));
        for (now, expected) in [
            (1_059, Decision::Wait { due: since }),
            (1_060, held),
            (1_099, held),
            (1_100, Decision::Delete { due: Timestamp(1_100) }),
            (9_999, Decision::Delete { due: Timestamp(1_100) }),
        ] {
            assert_eq!(decide(&job, Now::at(Timestamp(now))), expected, "at {now}");
        }
    }

    #[test]
    fn a_hold_that_ends_before_the_ttl_changes_nothing() {
        let hold = Some(HoldWish::Until(Timestamp(1_059)));
        let job = Subject { hold, ..finished_with_ttl(60) };
        let due = Timestamp(1_060);
        assert_eq!(decide(&job, Now::at(due)), Decision::Delete { due });
        assert_eq!(job.due(), Some(due));
    }

    #[test]
    fn a_hold_keeps_no_job_for_longer_than_the_maximum() {
        for hold in [HoldWish::Unreadable, HoldWish::Until(Timestamp(i64::MAX))] {
            let job = Subject { hold: Some(hold), ..finished_with_ttl(60) };
            let due = Timestamp(1_560);
            assert!(matches!(decide(&job, Now::at(Timestamp(1_559))), Decision::Held { .. }));
            assert_eq!(decide(&job, Now::at(due)), Decision::Delete { due }, "{hold:?}");
            let without = Subject { maximum_hold: 0, ..job };
            let due = Timestamp(1_060);
            assert_eq!(decide(&without, Now::at(due)), Decision::Delete { due }, "{hold:?}");
        }
    }

    #[test]
    fn nothing_is_deleted_while_the_time_is_not_known() {
        let held = Now::Held { likely: Timestamp(9_999) };
        let due = Timestamp(1_060);
        assert_eq!(decide(&finished_with_ttl(60), held), Decision::Wait { due });
    }

    #[test]
    fn an_unfinished_job_and_one_without_a_ttl_are_kept_whatever_the_clock_says() {
        let running = Subject { finished_at: None, ..finished_with_ttl(0) };
        let endless = Subject { ttl: None, ..finished_with_ttl(0) };
        for job in [running, endless] {
            assert_eq!(decide(&job, Now::at(Timestamp(i64::MAX))), Decision::Keep);
        }
    }

    #[test]
    fn an_exempt_job_is_kept() {
        use Exemption::{AwaitingRelease, ManagedElsewhere, RemoteCopy, Terminating};
        for exemption in [ManagedElsewhere, RemoteCopy, Terminating, AwaitingRelease] {
            let job = Subject { exemption: Some(exemption), ..finished_with_ttl(0) };
            assert_eq!(decide(&job, Now::at(FINISHED)), Decision::Keep, "{exemption:?}");
        }
    }
}
