//! When a job is tried again after a failure, and when the users of the job are told of it.

use std::time::Duration;

use crate::{action::Action, priority::Priority};

/// A failure that may pass by itself is told to users from so many answers in a row on.
const TELL_FROM: u32 = 3;
/// A denial is told from so many in a row on: an API server that has just started knows no RBAC rules for a moment.
const TELL_DENIALS_FROM: u32 = 2;
/// How long a job in a namespace that is being deleted is left alone.
const NAMESPACE_GOING: Duration = Duration::from_secs(30);
/// The wait after the first failure, before jitter.
const FIRST: Duration = Duration::from_millis(100);

/// What a failure means for trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The decision was made on an old version: decide again when the newer one has arrived.
    Conflict,
    /// What it was about is gone.
    Gone,
    /// There already is an object of that name.
    Exists,
    /// Too many requests; not before this long has passed.
    Throttled(Duration),
    /// The namespace is being deleted: nothing can be made in it, and nobody can be told.
    NamespaceGoing,
    /// The API server has not discovered the TrainJob kind yet. It will, or somebody has to see why not.
    KindUndiscovered,
    /// May well work next time.
    Transient,
    /// Somebody has to change something first: a permission, a webhook, the job.
    Denied,
}

/// A call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// What that means for trying again.
    pub class: Class,
    /// Whether the API server was reached: that it cannot be is said by the watches.
    pub reached: bool,
}

/// When a job is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retry {
    /// After so long. Whoever waits spreads it over its upper half, so that what failed together is not tried again
    /// together.
    pub backoff: Duration,
    /// Not before so long.
    pub at_least: Duration,
}

/// What is remembered of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Retries {
    /// Failures in a row.
    failures: u32,
    /// Those of them for which the API server was reached.
    refusals: u32,
    /// Since when the API server refuses for want of the TrainJob kind.
    undiscovered_since: Option<Duration>,
    /// When it was told to wait, and for how long.
    told_to_wait: Option<(Duration, Duration)>,
}

impl Retries {
    /// How long work of this priority has to wait yet, if it was told to. News of the job does not end that.
    pub(super) fn throttled(&self, priority: Priority, now: Duration) -> Option<Duration> {
        let (told, wait) = self.told_to_wait?;
        let until = told.saturating_add(wait.min(longest_throttle(priority)));
        until.checked_sub(now).filter(|wait| !wait.is_zero())
    }

    /// The next try after one more failure.
    pub(super) fn again(&mut self, priority: Priority, at_least: Duration) -> Retry {
        self.failures = self.failures.saturating_add(1);
        Retry { backoff: backoff(self.failures, priority), at_least }
    }

    /// How long a failure of this class puts the next try off, whatever the backoff is. To be called before
    /// [`again`](Self::again).
    pub(super) fn put_off(&mut self, class: Class, priority: Priority, now: Duration) -> Duration {
        match class {
            Class::Throttled(wait) => {
                self.told_to_wait = Some((now, wait));
                wait.min(longest_throttle(priority))
            }
            Class::NamespaceGoing => NAMESPACE_GOING,
            Class::Denied => {
                // What somebody has to change first is seldom changed within seconds: each wait is eight times the one
                // before. A policy that denies thousands of jobs of a namespace would otherwise have most of the API
                // server's time.
                self.failures = self.failures.saturating_add(2 * self.failures.min(1));
                Duration::ZERO
            }
            Class::Conflict
            | Class::Gone
            | Class::Exists
            | Class::KindUndiscovered
            | Class::Transient => Duration::ZERO,
        }
    }

    /// Notes a refusal for want of the TrainJob kind; how long ago the first of them was.
    pub(super) fn undiscovered(&mut self, now: Duration) -> Duration {
        now.saturating_sub(*self.undiscovered_since.get_or_insert(now))
    }

    /// Counts a failure; whether the users of the job are told of it.
    pub(super) const fn note_failure(&mut self, failure: Failure, action: Option<&Action>) -> bool {
        if !failure.reached {
            return false;
        }
        self.refusals = self.refusals.saturating_add(1);
        match (failure.class, action) {
            (Class::Denied, _) => self.refusals >= TELL_DENIALS_FROM,
            (Class::KindUndiscovered, _) => true,
            // The API server has no reason to call a deletion a conflict again and again; a webhook may.
            (Class::Transient, _) | (Class::Conflict, Some(Action::DeleteJobSet { .. })) => {
                self.refusals >= TELL_FROM
            }
            (
                Class::Conflict
                | Class::Gone
                | Class::Exists
                | Class::Throttled(_)
                | Class::NamespaceGoing,
                _,
            ) => false,
        }
    }
}

/// The longest that a `Retry-After` holds up a job: what holds accelerators is let go of sooner. It holds up no other
/// job: what answers so may be one webhook, or one kind.
const fn longest_throttle(priority: Priority) -> Duration {
    match priority {
        Priority::Stop => Duration::from_secs(5),
        Priority::Live | Priority::Cleanup => Duration::from_secs(30),
    }
}

/// The wait after so many failures in a row: doubling from 100 ms up to what the priority allows.
fn backoff(failures: u32, priority: Priority) -> Duration {
    let longest = match priority {
        Priority::Stop => Duration::from_secs(5),
        Priority::Live => Duration::from_mins(1),
        Priority::Cleanup => Duration::from_mins(2),
    };
    let doublings = failures.saturating_sub(1).min(16);
    FIRST.saturating_mul(1 << doublings).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::DeletionReason;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn backoff_doubles_up_to_the_limit_of_the_lane() {
        for (failures, priority, expected) in [
            (1, Priority::Live, 100),
            (2, Priority::Live, 200),
            (20, Priority::Stop, 5_000),
            (20, Priority::Live, 60_000),
            (u32::MAX, Priority::Cleanup, 120_000),
        ] {
            let expected = Duration::from_millis(expected);
            assert_eq!(backoff(failures, priority), expected, "{failures} {priority:?}");
        }
    }

    #[test]
    fn waits_after_denials_grow_eightfold() {
        let waits = |class| {
            let mut retries = Retries::default();
            [(); 6].map(|()| {
                let at_least = retries.put_off(class, Priority::Live, Duration::ZERO);
                let Retry { backoff, at_least } = retries.again(Priority::Live, at_least);
                assert_eq!(at_least, Duration::ZERO);
                backoff.as_millis()
            })
        };
        assert_eq!(waits(Class::Transient), [100, 200, 400, 800, 1_600, 3_200]);
        assert_eq!(waits(Class::Denied), [100, 800, 6_400, 51_200, 60_000, 60_000]);
    }

    #[test]
    fn throttled_job_waits_but_stops_after_five_seconds_at_most() {
        for (told, priority, after, wait) in [
            (3, Priority::Live, 1, Some(2)),
            (3, Priority::Stop, 1, Some(2)),
            (20, Priority::Stop, 1, Some(4)),
            (20, Priority::Stop, 5, None),
            (20, Priority::Cleanup, 5, Some(15)),
            (3_600, Priority::Live, 5, Some(25)),
            (3, Priority::Live, 3, None),
        ] {
            let mut retries = Retries::default();
            retries.put_off(Class::Throttled(seconds(told)), priority, seconds(100));
            let left = retries.throttled(priority, seconds(100 + after));
            assert_eq!(left, wait.map(seconds), "{told} s, {priority:?}, after {after} s");
        }
        assert_eq!(Retries::default().throttled(Priority::Live, seconds(100)), None);
    }

    #[test]
    fn refusals_for_want_of_the_kind_count_from_the_first_since_the_last_success() {
        let mut retries = Retries::default();
        assert_eq!([0, 2, 44].map(|at| retries.undiscovered(seconds(at))), [0, 2, 44].map(seconds));
        retries = Retries::default();
        assert_eq!([100, 103].map(|at| retries.undiscovered(seconds(at))), [0, 3].map(seconds));
    }

    #[test]
    fn failure_that_may_pass_is_told_from_the_third_answer_on_and_a_denial_from_the_second() {
        let delete = Action::DeleteJobSet { uid: "U".into(), reason: DeletionReason::JobEnded };
        let read = Action::ReadJobSet;
        for (class, action, told_from) in [
            (Class::Transient, &read, Some(3)),
            (Class::Denied, &read, Some(2)),
            (Class::KindUndiscovered, &read, Some(1)),
            (Class::Conflict, &delete, Some(3)),
            (Class::Conflict, &read, None),
            (Class::Gone, &delete, None),
            (Class::Throttled(seconds(1)), &delete, None),
            (Class::NamespaceGoing, &read, None),
        ] {
            let mut retries = Retries::default();
            let told =
                |_: &u32| retries.note_failure(Failure { class, reached: true }, Some(action));
            assert_eq!((1..=5).find(told), told_from, "{class:?} {action:?}");
            let unreached = Failure { class, reached: false };
            assert!(!retries.note_failure(unreached, Some(action)), "{class:?}");
        }
    }
}
