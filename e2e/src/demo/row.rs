//! One line of the table: how a job is, and what happens to it next.

use std::fmt;

use crate::demo::clock::{Timestamp, after, countdown};
use crate::demo::lateness::deletion_due;
use crate::demo::scenario::{Outcome, Scenario};

/// How a job is, in a word or two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It was not seen yet.
    Unknown,
    /// It was not let in.
    Refused,
    /// It is told to hold nothing.
    Suspended,
    /// Something it needs is not there.
    Waiting,
    /// No Pod of it runs yet.
    Starting,
    /// A Pod of it runs.
    Running,
    /// Its Pods have ended; the end of the job follows.
    Ending,
    /// Its deadline failed it, and it still holds something.
    Releasing,
    /// It has finished.
    Finished(Outcome),
    /// It is being deleted.
    Deleting,
    /// It is gone.
    Gone,
}

impl Phase {
    /// The phase of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let Some(job) = &scenario.job else {
            return if scenario.refused_at.is_some() { Self::Refused } else { Self::Unknown };
        };
        let finished = scenario.finished.as_ref().map(|finish| &finish.outcome);
        match finished {
            _ if scenario.gone_at.is_some() => Self::Gone,
            _ if scenario.deleted_at.is_some() => Self::Deleting,
            Some(Outcome::DeadlineExceeded) if !scenario.holds_nothing() => Self::Releasing,
            Some(outcome) => Self::Finished(outcome.clone()),
            None if job.spec.suspend || job.condition("Suspended").is_some() => Self::Suspended,
            None if job.condition("Waiting").is_some() => Self::Waiting,
            None if scenario.running_pods() > 0 => Self::Running,
            None if scenario.has_run() => Self::Ending,
            None => Self::Starting,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.pad("-"),
            Self::Finished(outcome) => f.pad(&outcome.name()),
            other => f.pad(&format!("{other:?}")),
        }
    }
}

/// What the operator does to a job next, if nothing else happens before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing by itself.
    Nothing,
    /// Its deadline fails it.
    Deadline(Timestamp),
    /// Its time to live deletes it.
    Deletion(Timestamp),
}

impl Next {
    fn of(scenario: &Scenario) -> Self {
        let deadline = || {
            let job = scenario.job.as_ref()?;
            Some(Self::Deadline(after(job.created, job.spec.active_deadline_seconds?)))
        };
        let next = match (scenario.deleted_at, &scenario.finished) {
            (Some(_), _) => None,
            (None, Some(_)) => deletion_due(scenario).map(Self::Deletion),
            (None, None) => deadline(),
        };
        next.unwrap_or(Self::Nothing)
    }

    /// What it is, in a word or two.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Nothing => "-",
            Self::Deadline(_) => "deadline",
            Self::Deletion(_) => "TTL deletion",
        }
    }

    /// The time left at `now`, such as `1:59:59`.
    #[must_use]
    pub fn left(self, now: Timestamp) -> String {
        match self {
            Self::Nothing => "-".to_owned(),
            Self::Deadline(due) | Self::Deletion(due) => countdown(due.duration_since(now)),
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The name of the job.
    pub job: &'static str,
    /// How it is.
    pub phase: Phase,
    /// How many of its Pods run.
    pub pods: usize,
    /// The GPUs it holds.
    pub gpus: i64,
    /// What happens next.
    pub next: Next,
}

impl Row {
    /// The row of a scenario.
    #[must_use]
    pub fn of(job: &'static str, scenario: &Scenario) -> Self {
        Self {
            job,
            phase: Phase::of(scenario),
            pods: scenario.running_pods(),
            gpus: scenario.held_gpus(),
            next: Next::of(scenario),
        }
    }

    /// Whether there is anything to see of the job.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.phase != Phase::Unknown
    }

    /// Whether there is nothing more to see of the job.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.phase == Phase::Gone
    }

    /// Whether a person who reads along would want to know of the difference at once.
    #[must_use]
    pub fn is_news_after(&self, before: &Self) -> bool {
        self.phase != before.phase || self.next != before.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::seen::{Change, PodPhase};
    use crate::demo::testing::{at, condition, job, pod};

    fn row(changes: &[Change]) -> Row {
        let mut scenario = Scenario::default();
        for change in changes {
            scenario.see(at(1.0), change);
        }
        Row::of("job", &scenario)
    }

    fn shown(changes: &[Change]) -> (String, &'static str, String) {
        let row = row(changes);
        (row.phase.to_string(), row.next.what(), row.next.left(at(4.0)))
    }

    fn both_armed(change: impl FnOnce(&mut crate::demo::seen::JobState)) -> Change {
        job(|job| {
            job.spec.active_deadline_seconds = Some(10);
            job.spec.ttl_seconds_after_finished = Some(20);
            change(job);
        })
    }

    #[test]
    fn a_job_that_runs_into_its_deadline_is_shown_from_start_to_end() {
        let mut changes = Vec::new();
        let failed = || both_armed(|job| job.finish("Failed", "DeadlineExceeded", 10));
        let deleting = both_armed(|job| {
            job.finish("Failed", "DeadlineExceeded", 10);
            job.deleted = Some(at(30.0));
        });
        for (change, phase, next, left) in [
            (both_armed(|_| {}), "Starting", "deadline", "0:06"),
            (Change::JobSet { ended: false }, "Starting", "deadline", "0:06"),
            (pod("a", PodPhase::Starting, 2), "Starting", "deadline", "0:06"),
            (pod("a", PodPhase::Running, 2), "Running", "deadline", "0:06"),
            (pod("a", PodPhase::Ended, 2), "Ending", "deadline", "0:06"),
            (pod("b", PodPhase::Running, 2), "Running", "deadline", "0:06"),
            (failed(), "Releasing", "TTL deletion", "0:26"),
            (Change::JobSetGone, "Releasing", "TTL deletion", "0:26"),
            (pod("b", PodPhase::Ended, 2), "Failed: DeadlineExceeded", "TTL deletion", "0:26"),
            (Change::PodGone("b".to_owned()), "Failed: DeadlineExceeded", "TTL deletion", "0:26"),
            (deleting, "Deleting", "-", "-"),
            (Change::JobGone, "Gone", "-", "-"),
        ] {
            changes.push(change);
            assert_eq!(shown(&changes), (phase.to_owned(), next, left.to_owned()));
        }
    }

    #[test]
    fn a_job_that_holds_nothing_says_why() {
        let suspended = job(|job| job.conditions = vec![condition("Suspended", "Suspended", 1)]);
        let waiting = job(|job| job.conditions = vec![condition("Waiting", "RuntimeNotFound", 1)]);
        for (changes, phase) in [
            (vec![], "-"),
            (vec![suspended], "Suspended"),
            (vec![job(|job| job.spec.suspend = true)], "Suspended"),
            (vec![waiting], "Waiting"),
            (vec![Change::Refused("no runtime".to_owned())], "Refused"),
            (vec![job(|job| job.finish("Complete", "", 1))], "Complete"),
            (vec![job(|job| job.finish("Failed", "FailedJobs", 1))], "Failed: FailedJobs"),
        ] {
            assert_eq!(shown(&changes), (phase.to_owned(), "-", "-".to_owned()));
        }
    }

    #[test]
    fn another_running_pod_is_no_news() {
        let one = row(&[job(|_| {}), pod("a", PodPhase::Running, 1)]);
        let two =
            row(&[job(|_| {}), pod("a", PodPhase::Running, 1), pod("b", PodPhase::Running, 1)]);
        assert_eq!((two.pods, two.gpus), (2, 2));
        assert!(!two.is_news_after(&one));
        assert!(one.is_news_after(&row(&[job(|_| {})])));
    }
}
