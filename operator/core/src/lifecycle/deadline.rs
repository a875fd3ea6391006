//! The active deadline: when an unfinished TrainJob is failed.
//!
//! A job may be active for `activeDeadlineSeconds`, counted from an instant that [`Clock`] chooses.
//! The rules are D1–D7 of `docs/semantics.md`; their sources are KEP-2899 (the field, and counting
//! from creation) and Kubeflow Trainer 2.3 (counting from the last resume).
//!
//! The decision is one question: whether an instant [has come](Now::has_come). The order of what follows (first the stored
//! condition, then the deletion) belongs to [`plan`](crate::plan::plan).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trainjob_api::time::Timestamp;

use crate::{
    facts::{Standing, SuspendedCondition},
    now::Now,
};

/// Whoever sets a deadline of so many seconds or fewer is not told that it comes (D8).
const SHORT: i64 = 3_600;
/// How long before a deadline users are told that it comes, in seconds, unless that is configured.
pub const DEFAULT_WARNING: u32 = 600;

/// What the deadline is counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
pub enum Clock {
    /// The job's creation; the time it is suspended counts (KEP-2899).
    #[default]
    Creation,
    /// The job's last resume, or its creation if it was never suspended; it stands still while the
    /// job is suspended (Kubeflow Trainer 2.3).
    LastResume,
}

/// What the deadline rule needs to know of an unfinished job, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// When the job was created.
    pub created_at: Timestamp,
    /// `spec.activeDeadlineSeconds`, in seconds; `None` means the job may run for ever.
    pub seconds: Option<i64>,
    /// Whether `spec.suspend` is true.
    pub suspend: bool,
    /// The stored `Suspended` condition.
    pub suspended: Option<SuspendedCondition>,
    /// What the deadline is counted from.
    pub clock: Clock,
}

impl Subject {
    /// The subject that a job is for this rule.
    #[must_use]
    pub fn of(job: impl Into<Standing>, clock: Clock) -> Self {
        let job = job.into();
        Self {
            created_at: job.created_at,
            seconds: job.deadline,
            suspend: job.suspend,
            suspended: job.suspended,
            clock,
        }
    }

    /// When users are told of the deadline that is due at `due`, `warning` seconds before it; `None`: they are not (D8).
    #[must_use]
    pub fn warning_at(&self, due: Timestamp, warning: u32) -> Option<Timestamp> {
        let is_long = self.seconds.is_some_and(|seconds| seconds > SHORT);
        (is_long && warning > 0).then(|| due.plus(-i64::from(warning)))
    }

    /// When the clock started; `None` while it stands still.
    fn start(&self) -> Option<Timestamp> {
        match (self.clock, self.suspend, self.suspended) {
            (Clock::Creation, ..) | (Clock::LastResume, false, None) => Some(self.created_at),
            (Clock::LastResume, false, Some(SuspendedCondition { holds: false, since })) => {
                Some(since)
            }
            // Resumed, but not yet recorded: the record, which is being written, starts the clock.
            (Clock::LastResume, false, Some(_)) | (Clock::LastResume, true, _) => None,
        }
    }
}

/// What the deadline asks for at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, until something about the job changes.
    Never,
    /// Nothing yet; ask again at `due`.
    Wait {
        /// When the job will have run too long.
        due: Timestamp,
    },
    /// Fail the job now.
    Exceeded {
        /// When that became possible; lateness is measured from here.
        due: Timestamp,
    },
}

/// Decides what an unfinished job's deadline asks for at `now`.
///
/// Total: a deadline beyond the range of time never fires.
///
/// ```
/// use trainjob_api::time::Timestamp;
/// use trainjob_core::{
///     Now,
///     lifecycle::deadline::{Clock, Decision, Subject, decide},
/// };
///
/// let (created_at, clock) = (Timestamp(1_000), Clock::Creation);
/// let job = Subject { created_at, seconds: Some(60), suspend: false, suspended: None, clock };
/// let due = Timestamp(1_060);
/// assert_eq!(decide(&job, Now::at(Timestamp(1_059))), Decision::Wait { due });
/// assert_eq!(decide(&job, Now::at(due)), Decision::Exceeded { due });
/// ```
#[must_use]
pub fn decide(job: &Subject, now: Now) -> Decision {
    let (Some(seconds), Some(start)) = (job.seconds, job.start()) else {
        return Decision::Never;
    };
    match start.plus(seconds) {
        Timestamp(i64::MAX) => Decision::Never,
        due if now.has_come(due) => Decision::Exceeded { due },
        due => Decision::Wait { due },
    }
}

/// The deadline that failed a job, as its users are told of it.
///
/// Under [`Clock::Creation`] a job may have waited in a queue for most of its time. How long is said as far as it is
/// known: a condition keeps only the last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// `spec.activeDeadlineSeconds`.
    pub seconds: i64,
    /// When the clock started.
    pub start: Timestamp,
    /// When the deadline was due.
    pub due: Timestamp,
    /// What it was counted from.
    pub clock: Clock,
    /// The stored `Suspended` condition.
    pub suspended: Option<SuspendedCondition>,
}

impl Explanation {
    /// Why the deadline that was `due` failed this job.
    #[must_use]
    pub fn of(job: &Subject, due: Timestamp) -> Self {
        Self {
            seconds: job.seconds.unwrap_or_default(),
            start: job.start().unwrap_or(job.created_at),
            due,
            clock: job.clock,
            suspended: job.suspended,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, start, due, clock, suspended } = self;
        let (from, name) = match (clock, suspended) {
            (Clock::LastResume, Some(_)) => ("last resume", "LastResume"),
            (Clock::LastResume, None) => ("creation", "LastResume"),
            (Clock::Creation, _) => ("creation", "Creation"),
        };
        write!(
            f,
            "Its {seconds} seconds (spec.activeDeadlineSeconds) count from its {from} at {start} \
             (lifecycle.deadlineClock: {name}) and were over at {due}."
        )?;
        match (clock, suspended) {
            (Clock::Creation, Some(SuspendedCondition { holds: true, since })) => {
                let of_them = due.since(*since.max(start)).max(0);
                write!(f, " It has been suspended since {since}, which took {of_them} of them.")
            }
            (Clock::Creation, Some(SuspendedCondition { holds: false, since })) => {
                let after = since.since(*start).max(0);
                write!(f, " It was last resumed at {since}, {after} seconds after its creation.")
            }
            (Clock::Creation, None) | (Clock::LastResume, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATED: Timestamp = Timestamp(1_000);

    const fn job(clock: Clock) -> Subject {
        Subject { created_at: CREATED, seconds: Some(60), suspend: false, suspended: None, clock }
    }

    const fn resumed_at(since: i64) -> SuspendedCondition {
        SuspendedCondition { holds: false, since: Timestamp(since) }
    }

    #[test]
    fn a_job_fails_from_the_second_its_deadline_has_passed_and_never_before() {
        let due = Timestamp(1_060);
        for clock in [Clock::Creation, Clock::LastResume] {
            for (now, expected) in [
                (1_000, Decision::Wait { due }),
                (1_059, Decision::Wait { due }),
                (1_060, Decision::Exceeded { due }),
                (9_999, Decision::Exceeded { due }),
            ] {
                assert_eq!(
                    decide(&job(clock), Now::at(Timestamp(now))),
                    expected,
                    "{clock:?} at {now}"
                );
            }
        }
    }

    #[test]
    fn suspension_stops_only_the_clock_of_the_last_resume() {
        for (clock, expected) in [
            (Clock::Creation, Decision::Exceeded { due: Timestamp(1_060) }),
            (Clock::LastResume, Decision::Never),
        ] {
            let suspended = Subject { suspend: true, ..job(clock) };
            assert_eq!(decide(&suspended, Now::at(Timestamp(9_999))), expected, "{clock:?}");
        }
    }

    #[test]
    fn a_resume_starts_the_clock_of_the_last_resume_anew() {
        for (clock, due) in [(Clock::Creation, 1_060), (Clock::LastResume, 5_060)] {
            let resumed = Subject { suspended: Some(resumed_at(5_000)), ..job(clock) };
            let due = Timestamp(due);
            assert_eq!(
                decide(&resumed, Now::at(Timestamp(0))),
                Decision::Wait { due },
                "{clock:?}"
            );
        }
    }

    #[test]
    fn a_resume_that_is_not_recorded_yet_does_not_fire_on_the_old_clock() {
        let holds = Some(SuspendedCondition { holds: true, since: Timestamp(1_001) });
        let resuming = Subject { suspended: holds, ..job(Clock::LastResume) };
        assert_eq!(decide(&resuming, Now::at(Timestamp(9_999))), Decision::Never);
    }

    #[test]
    fn no_deadline_and_one_beyond_time_never_fire() {
        for seconds in [None, Some(i64::MAX)] {
            let endless = Subject { seconds, ..job(Clock::Creation) };
            assert_eq!(
                decide(&endless, Now::at(Timestamp(i64::MAX))),
                Decision::Never,
                "{seconds:?}"
            );
        }
    }

    #[test]
    fn explanation_says_seconds_clock_start_and_how_long_the_job_was_suspended() {
        let start = "at 1970-01-01T00:16:40Z";
        let suspended_since = |at| Some(SuspendedCondition { holds: true, since: Timestamp(at) });
        for (clock, suspended, said) in [
            (Clock::Creation, None, vec!["its creation", start, "Clock: Creation", "00:17:40Z."]),
            (
                Clock::Creation,
                suspended_since(1_000),
                vec!["its creation", "suspended since 1970-01-01T00:16:40Z, which took 60 of them"],
            ),
            (Clock::Creation, suspended_since(1_050), vec!["its creation", "which took 10 of"]),
            (Clock::Creation, suspended_since(1_070), vec!["its creation", "which took 0 of them"]),
            (
                Clock::Creation,
                Some(resumed_at(1_045)),
                vec!["its creation", start, "at 1970-01-01T00:17:25Z, 45 seconds after its"],
            ),
            (Clock::LastResume, None, vec!["its creation", start, "Clock: LastResume"]),
            (
                Clock::LastResume,
                Some(resumed_at(1_045)),
                vec!["its last resume at 1970-01-01T00:17:25Z"],
            ),
        ] {
            let subject = Subject { suspended, ..job(clock) };
            let due = subject.start().unwrap().plus(60);
            let text = Explanation::of(&subject, due).to_string();
            assert!(text.starts_with("Its 60 seconds (spec.activeDeadlineSeconds)"), "{text}");
            for said in said {
                assert!(text.contains(said), "{text}");
            }
            let about_suspension = text.contains("suspended") || text.contains("last resumed at");
            assert_eq!(about_suspension, clock == Clock::Creation && suspended.is_some(), "{text}");
        }
    }
}
