//! How far from its due time an action was, as somebody who watches sees it.
//!
//! An action is due at a full second that follows from stored values. What is measured is the time
//! from there to the instant at which the watch delivered the result, so the way to the demo counts
//! too. Where something else has to be there first, the time is measured from that: nobody can delete
//! a job before its JobSet has ended (a time to live of 0 is due at the beginning of the very second
//! it ended in), nor one that its deadline failed before it is released.

use crate::demo::clock::{SignedDuration, Timestamp, after};
use crate::demo::scenario::{Outcome, Scenario};

/// What the operator is measured against.
pub const TARGET: SignedDuration = SignedDuration::from_millis(250);

/// What nobody has to put up with: later than this is a failure.
pub const LIMIT: SignedDuration = SignedDuration::from_secs(5);

/// How far from its due time an action was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Punctuality {
    /// It came before it was due, by this much.
    Early(SignedDuration),
    /// It came when it was due or later, by this much.
    Late(SignedDuration),
}

/// An instant at which something was due, and what became of it.
struct Appointment {
    due: Timestamp,
    /// When it could be done.
    possible: Timestamp,
    /// The instant stored with the result, in whole seconds.
    stored: Option<Timestamp>,
    seen: Timestamp,
}

impl Appointment {
    fn punctuality(&self) -> Punctuality {
        // What is stored tells of an early action however late it was seen.
        let first = self.stored.map_or(self.seen, |stored| stored.min(self.seen));
        // The stored instant is cut off to the second, and so is what it is compared with.
        if first < self.due {
            return Punctuality::Early(self.due.duration_since(first));
        }
        let since = self.due.max(self.possible);
        Punctuality::Late(self.seen.duration_since(since).max(SignedDuration::ZERO))
    }
}

/// How punctually the deadline failed a job; `None` if it did not.
#[must_use]
pub fn of_deadline(scenario: &Scenario) -> Option<Punctuality> {
    let finish = scenario.finished.as_ref().filter(|it| it.outcome == Outcome::DeadlineExceeded)?;
    let job = scenario.job.as_ref()?;
    let due = after(job.created, job.spec.active_deadline_seconds?);
    let (stored, seen) = (Some(finish.at), finish.seen);
    Some(Appointment { due, possible: due, stored, seen }.punctuality())
}

/// When the time to live of a finished job is over.
#[must_use]
pub fn deletion_due(scenario: &Scenario) -> Option<Timestamp> {
    let finish = scenario.finished.as_ref()?;
    Some(after(finish.at, scenario.job.as_ref()?.spec.ttl_seconds_after_finished?))
}

/// How punctually the time to live deleted a job; `None` if it did not, or the demo itself did.
#[must_use]
pub fn of_deletion(scenario: &Scenario) -> Option<Punctuality> {
    let seen = scenario.deleted_at.filter(|_| scenario.removed_at.is_none())?;
    let finish = scenario.finished.as_ref()?;
    let ended = match finish.outcome {
        Outcome::DeadlineExceeded => scenario.released_at,
        _ => scenario.ended_at,
    };
    let possible = ended.unwrap_or(finish.seen);
    let stored = scenario.job.as_ref().and_then(|job| job.deleted);
    Some(Appointment { due: deletion_due(scenario)?, possible, stored, seen }.punctuality())
}

#[cfg(test)]
mod tests {
    use Punctuality::{Early, Late};

    use super::*;
    use crate::demo::seen::Change;
    use crate::demo::testing::{at, job};

    const fn millis(millis: i64) -> SignedDuration {
        SignedDuration::from_millis(millis)
    }

    /// A job with deadline 10 and TTL 10 that ended with `reason` at second `stored`.
    fn ended(kind: &str, reason: &str, stored: i32, seen: f64) -> Scenario {
        let mut scenario = Scenario::default();
        scenario.see(
            at(seen),
            &job(|job| {
                job.spec.active_deadline_seconds = Some(10);
                job.spec.ttl_seconds_after_finished = Some(10);
                job.finish(kind, reason, stored);
            }),
        );
        scenario
    }

    fn deletion(mut scenario: Scenario, stored: f64, seen: f64) -> Option<Punctuality> {
        let mut state = scenario.job.clone().unwrap();
        state.deleted = Some(at(stored));
        scenario.see(at(seen), &Change::Job(Box::new(state)));
        of_deletion(&scenario)
    }

    #[test]
    fn a_deadline_is_late_from_the_full_second_it_is_due_at() {
        for (stored, seen, expected) in [
            (10, 10.012, Late(millis(12))),
            (16, 16.2, Late(millis(6_200))),
            (9, 9.9, Early(millis(1_000))),
            // Seen when it was due, but stored before.
            (9, 10.1, Early(millis(1_000))),
        ] {
            let scenario = ended("Failed", "DeadlineExceeded", stored, seen);
            assert_eq!(of_deadline(&scenario), Some(expected), "{stored} {seen}");
        }
        assert_eq!(of_deadline(&ended("Failed", "FailedJobs", 9, 9.9)), None);
    }

    #[test]
    fn a_deletion_is_late_from_the_end_of_the_time_to_live() {
        for (stored, seen, expected) in [
            (19.0, 19.03, Late(millis(30))),
            (18.0, 18.9, Early(millis(1_000))),
            (18.0, 19.5, Early(millis(1_000))),
        ] {
            let scenario = ended("Complete", "AllJobsCompleted", 9, 9.5);
            assert_eq!(deletion(scenario, stored, seen), Some(expected), "{stored} {seen}");
        }
    }

    #[test]
    fn a_time_to_live_of_zero_is_not_late_because_a_second_has_fractions() {
        let mut scenario = ended("Complete", "AllJobsCompleted", 9, 9.9);
        scenario.job.as_mut().unwrap().spec.ttl_seconds_after_finished = Some(0);
        assert_eq!(deletion(scenario.clone(), 9.0, 9.92), Some(Late(millis(20))));
        // But because the end of the JobSet was passed on late.
        scenario.ended_at = Some(at(9.5));
        assert_eq!(deletion(scenario, 9.0, 9.92), Some(Late(millis(420))));
    }

    #[test]
    fn the_deletion_of_a_job_that_its_deadline_failed_waits_for_its_release() {
        let mut scenario = ended("Failed", "DeadlineExceeded", 10, 10.1);
        scenario.released_at = Some(at(25.0));
        assert_eq!(deletion(scenario.clone(), 25.0, 25.04), Some(Late(millis(40))));
        // Two watches: the release may be seen after what followed from it.
        assert_eq!(deletion(scenario, 24.0, 24.99), Some(Late(millis(0))));
    }

    #[test]
    fn deletion_by_the_demo_is_not_measured() {
        let mut scenario = ended("Complete", "AllJobsCompleted", 9, 9.5);
        scenario.removed_at = Some(at(12.0));
        assert_eq!(deletion(scenario, 12.0, 12.1), None);
    }
}
