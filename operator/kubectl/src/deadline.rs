//! How long a TrainJob may still run.
//!
//! What a deadline counts from is a setting of the operator (`lifecycle.deadlineClock`), which users usually may not
//! read. Most jobs have never been suspended, and both clocks agree. Where they do not, the earlier end is shown as a lower
//! bound, unless the user says which clock the cluster has. That a job has not failed yet does not tell it either: the
//! operator may be down, or may not know the time.

use std::fmt;

use serde::Serialize;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Now,
    facts::JobFacts,
    lifecycle::deadline::{Clock, Decision, Subject, decide},
};

use crate::duration::brief;

/// How long a TrainJob may still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all_fields = "camelCase")]
pub enum Deadline {
    /// It has none, or none that applies: it has finished, or another controller manages it.
    None,
    /// Its clock does not run, because it is suspended.
    Stopped,
    /// It lies beyond the range of time.
    Endless,
    /// It runs out at `due`.
    Running {
        /// When, in RFC 3339.
        #[serde(serialize_with = "text")]
        due: Timestamp,
        /// In so many seconds.
        left_seconds: i64,
        /// Whether `due` is known. If not, it is then at the earliest.
        exact: bool,
    },
    /// It has run out, and the operator is to fail the job.
    Due {
        /// When it ran out, in RFC 3339.
        #[serde(serialize_with = "text")]
        due: Timestamp,
        /// Whether `due` is known. If not, it was then at the latest.
        exact: bool,
    },
    /// It has run out if it counts from the creation, and has not if it counts from the last resume.
    DueByCreation {
        /// When it ran out if it counts from the creation, in RFC 3339.
        #[serde(serialize_with = "text")]
        due: Timestamp,
        /// In how many seconds it runs out if it counts from the last resume; none while that clock stands still.
        #[serde(skip_serializing_if = "Option::is_none")]
        left_seconds: Option<i64>,
    },
}

/// Writes an instant as text.
///
/// # Errors
///
/// Those of the serializer.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(crate) fn text<S: serde::Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(at)
}

impl Deadline {
    /// How long a job may still run at `now`. `clock` is that of the cluster, if it is known.
    #[must_use]
    pub fn of(job: &JobFacts, clock: Option<Clock>, now: Timestamp) -> Self {
        if job.deadline.is_none() || job.finished.is_some() || job.managed_elsewhere {
            return Self::None;
        }
        if let Some(clock) = clock {
            return Self::by(job, clock, now);
        }
        let [creation, last_resume] =
            [Clock::Creation, Clock::LastResume].map(|clock| Self::by(job, clock, now));
        match (creation, last_resume) {
            _ if creation == last_resume => creation,
            (Self::Running { due, left_seconds, .. }, _) => {
                Self::Running { due, left_seconds, exact: false }
            }
            (Self::Due { due, .. }, Self::Due { due: other, .. }) => {
                Self::Due { due: due.max(other), exact: false }
            }
            (Self::Due { due, .. }, Self::Running { left_seconds, .. }) => {
                Self::DueByCreation { due, left_seconds: Some(left_seconds) }
            }
            (Self::Due { due, .. }, _) => Self::DueByCreation { due, left_seconds: None },
            (Self::None | Self::Stopped | Self::Endless | Self::DueByCreation { .. }, _) => {
                creation
            }
        }
    }

    fn by(job: &JobFacts, clock: Clock, now: Timestamp) -> Self {
        let subject = Subject::of(job, clock);
        match decide(&subject, Now::at(now)) {
            Decision::Wait { due } => {
                Self::Running { due, left_seconds: due.since(now), exact: true }
            }
            Decision::Exceeded { due } => Self::Due { due, exact: true },
            Decision::Never if clock == Clock::LastResume && stands(job) => Self::Stopped,
            Decision::Never => Self::Endless,
        }
    }
}

/// Whether the clock of the last resume stands still.
fn stands(job: &JobFacts) -> bool {
    job.suspend || job.suspended.is_some_and(|suspended| suspended.holds)
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self {
            Self::None => "-".to_owned(),
            Self::Stopped => "stopped".to_owned(),
            Self::Endless => "endless".to_owned(),
            Self::Due { .. } => "due".to_owned(),
            Self::DueByCreation { .. } => "due?".to_owned(),
            Self::Running { left_seconds, exact, .. } => {
                let bound = if *exact { "" } else { "≥" };
                format!("{bound}{}", brief(left_seconds.unsigned_abs()))
            }
        };
        f.pad(&said)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::TrainJob;

    use super::*;

    /// Created at second 0, with a deadline of 3,600 seconds unless something else is said.
    fn job(more: &Value, status: &Value) -> JobFacts {
        let mut spec = json!({"runtimeRef": {"name": "r"}, "activeDeadlineSeconds": 3_600});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let metadata = json!({"creationTimestamp": "1970-01-01T00:00:00Z"});
        let job = json!({"metadata": metadata, "spec": spec, "status": status});
        JobFacts::of(&serde_json::from_value::<TrainJob>(job).unwrap())
    }

    fn suspended(status: &str, at: i64) -> Value {
        let at = Timestamp(at).to_string();
        json!({"conditions": [{"type": "Suspended", "status": status, "reason": "", "message": "", "lastTransitionTime": at}]})
    }

    #[test]
    fn time_left_is_exact_where_both_clocks_agree_or_the_clock_is_known() {
        use Clock::{Creation, LastResume};
        let nothing = json!({});
        let paused = json!({"suspend": true});
        let resumed = suspended("False", 1_000);
        let held = suspended("True", 1_000);
        for (spec, status, clock, now, expected) in [
            (&nothing, &nothing, None, 600, "50m"),
            (&nothing, &nothing, None, 3_600, "due"),
            (&nothing, &resumed, None, 1_600, "≥33m20s"),
            (&nothing, &resumed, Some(Creation), 1_600, "33m20s"),
            (&nothing, &resumed, Some(LastResume), 1_600, "50m"),
            // Nobody knows whether it counts from the creation and the operator is late.
            (&nothing, &resumed, None, 4_000, "due?"),
            (&nothing, &resumed, Some(LastResume), 4_000, "10m"),
            (&nothing, &resumed, None, 5_000, "due"),
            (&paused, &held, None, 1_600, "≥33m20s"),
            (&paused, &held, None, 4_000, "due?"),
            (&paused, &held, Some(LastResume), 4_000, "stopped"),
            (&paused, &held, Some(LastResume), 1_600, "stopped"),
            (&paused, &held, Some(Creation), 4_000, "due"),
            (&json!({"activeDeadlineSeconds": i64::MAX}), &nothing, None, 600, "endless"),
            (&json!({"activeDeadlineSeconds": null}), &nothing, None, 600, "-"),
            (&json!({"activeDeadlineSeconds": -1}), &nothing, None, 600, "-"),
            (&json!({"managedBy": "somebody"}), &nothing, None, 600, "-"),
        ] {
            let left = Deadline::of(&job(spec, status), clock, Timestamp(now));
            assert_eq!(left.to_string(), expected, "{spec} {status} {clock:?} {now}");
        }
    }

    #[test]
    fn a_job_that_is_overdue_does_not_tell_which_clock_it_has() {
        let nothing = json!({});
        let (by_creation, by_last_resume) = (Timestamp(3_600), Timestamp(4_600));
        let unclear = |left_seconds| Deadline::DueByCreation { due: by_creation, left_seconds };
        for (spec, status, now, expected) in [
            (&nothing, suspended("False", 1_000), 4_000, unclear(Some(600))),
            (&json!({"suspend": true}), suspended("True", 1_000), 4_000, unclear(None)),
            (
                &nothing,
                suspended("False", 1_000),
                4_600,
                Deadline::Due { due: by_last_resume, exact: false },
            ),
            (&nothing, json!({}), 4_600, Deadline::Due { due: by_creation, exact: true }),
        ] {
            let left = Deadline::of(&job(spec, &status), None, Timestamp(now));
            assert_eq!(left, expected, "{spec} {status} {now}");
        }
    }

    #[test]
    fn a_finished_job_has_no_deadline_any_more() {
        let status = json!({"conditions": [{"type": "Complete", "status": "True", "reason": "", "message": "", "lastTransitionTime": "1970-01-01T00:00:10Z"}]});
        let left = Deadline::of(&job(&json!({}), &status), None, Timestamp(20));
        assert_eq!(left, Deadline::None);
    }

    #[test]
    fn programs_read_instants_and_seconds() {
        let due = Timestamp(3_600);
        let running = Deadline::Running { due, left_seconds: 60, exact: false };
        let expected = json!({
            "state": "Running", "due": "1970-01-01T01:00:00Z", "leftSeconds": 60, "exact": false,
        });
        assert_eq!(serde_json::to_value(running).unwrap(), expected);
        let unclear = Deadline::DueByCreation { due, left_seconds: Some(60) };
        let expected =
            json!({"state": "DueByCreation", "due": "1970-01-01T01:00:00Z", "leftSeconds": 60});
        assert_eq!(serde_json::to_value(unclear).unwrap(), expected);
        assert_eq!(serde_json::to_value(Deadline::None).unwrap(), json!({"state": "None"}));
    }
}
