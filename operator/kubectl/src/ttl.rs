//! How long a TrainJob stays after its end.

use std::fmt;

use serde::Serialize;
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Now,
    facts::JobFacts,
    lifecycle::{
        hold::{self, Hold},
        ttl::{Decision, Exemption, decide},
    },
    observed::Settings,
    plan::ttl_subject,
};

use crate::{deadline::text, duration::brief};

/// How long a TrainJob stays after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all_fields = "camelCase")]
pub enum Ttl {
    /// It has none, and has not finished.
    None,
    /// It has not finished, and stays for so long afterwards.
    AfterEnd {
        /// `spec.ttlSecondsAfterFinished`.
        seconds: u32,
    },
    /// It has finished and has none: it stays for ever.
    Never,
    /// It is deleted at `due`.
    Running {
        /// When, in RFC 3339.
        #[serde(serialize_with = "text")]
        due: Timestamp,
        /// In so many seconds.
        left_seconds: i64,
    },
    /// Its TTL has passed, and a hold keeps it. That holds last for 30 days at most is the default of the operator.
    Held {
        /// Until then, in RFC 3339.
        #[serde(serialize_with = "text")]
        due: Timestamp,
        /// For so many seconds.
        left_seconds: i64,
    },
    /// Its deadline has failed it, and Pods or a JobSet of it are left, so it is not deleted yet.
    AfterRelease,
    /// It has passed, and the operator is about to delete the job.
    Due {
        /// When it passed, in RFC 3339.
        #[serde(serialize_with = "text")]
        due: Timestamp,
    },
    /// It does not apply: another controller manages the job (unless `lifecycle.ttlForManagedElsewhere` is true, which the
    /// plugin cannot read), or it is a copy that MultiKueue made, or it is being deleted already.
    Exempt,
}

impl Ttl {
    /// How long a job stays at `now`. `released` is whether nothing of a job that its deadline failed is left.
    #[must_use]
    pub fn of(job: &JobFacts, released: bool, now: Timestamp) -> Self {
        let subject = ttl_subject(job, released, Settings::default());
        match (subject.exemption, subject.ttl, subject.finished_at) {
            (Some(exemption), ..) if exemption != Exemption::AwaitingRelease => {
                return Self::Exempt;
            }
            (_, None, None) => return Self::None,
            (_, Some(seconds), None) => return Self::AfterEnd { seconds },
            (_, None, Some(_)) => return Self::Never,
            (Some(_), ..) => return Self::AfterRelease,
            (None, Some(_), Some(_)) => {}
        }
        match decide(&subject, Now::at(now)) {
            // A subject without an exemption that has finished and has a TTL is never kept.
            Decision::Keep => Self::Never,
            Decision::Wait { due } => {
                let due = subject.due().unwrap_or(due);
                Self::Running { due, left_seconds: due.since(now) }
            }
            Decision::Held { hold, .. } => {
                Self::Held { due: hold.until, left_seconds: hold.until.since(now) }
            }
            Decision::Delete { due } => Self::Due { due },
        }
    }
}

/// When the TTL of a finished job ends, and the hold that keeps the job beyond that; `None` if none does. How long a hold
/// may be is a setting of the operator (`lifecycle.maximumHoldSeconds`), which the plugin cannot read: the hold is that of
/// its default.
#[must_use]
pub fn hold_of(job: &JobFacts) -> Option<(Timestamp, Hold)> {
    let end = job.finished?.at.plus(i64::from(job.ttl?));
    let hold = hold::of(job.hold, end, Settings::default().maximum_hold)?;
    Some((end, hold))
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self {
            Self::None | Self::Exempt => "-".to_owned(),
            Self::AfterEnd { seconds } => format!("+{}", brief((*seconds).into())),
            Self::Never => "never".to_owned(),
            Self::Running { left_seconds, .. } | Self::Held { left_seconds, .. } => {
                brief(left_seconds.unsigned_abs())
            }
            Self::AfterRelease => "release".to_owned(),
            Self::Due { .. } => "due".to_owned(),
        };
        f.pad(&said)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::TrainJob;

    use super::*;

    /// Finished at second 1,000 unless `reason` is none.
    fn job(metadata: &Value, spec: &Value, reason: Option<&str>) -> JobFacts {
        let conditions = reason.map(|reason| {
            let kind = if reason == "Done" { "Complete" } else { "Failed" };
            json!([{"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "1970-01-01T00:16:40Z"}])
        });
        let mut whole = json!({"runtimeRef": {"name": "r"}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let job =
            json!({"metadata": metadata, "spec": whole, "status": {"conditions": conditions}});
        JobFacts::of(&serde_json::from_value::<TrainJob>(job).unwrap())
    }

    #[test]
    fn a_job_stays_for_its_ttl_after_its_end() {
        let (none, hour) = (json!({}), json!({"ttlSecondsAfterFinished": 3_600}));
        let held =
            json!({"annotations": {"lifecycle.trainjob.dev/hold-until": "1970-01-01T03:00:00Z"}});
        let copy = json!({"labels": {"kueue.x-k8s.io/multikueue-origin": "m"}});
        let going = json!({"deletionTimestamp": "1970-01-01T00:20:00Z"});
        let elsewhere =
            json!({"ttlSecondsAfterFinished": 3_600, "managedBy": "kueue.x-k8s.io/multikueue"});
        for (metadata, spec, reason, released, now, expected) in [
            (&none, &none, None, true, 2_000, "-"),
            (&none, &hour, None, true, 2_000, "+1h"),
            (&none, &none, Some("Done"), true, 2_000, "never"),
            (&none, &hour, Some("Done"), true, 1_600, "50m"),
            (&none, &hour, Some("Done"), true, 4_600, "due"),
            (&held, &hour, Some("Done"), true, 1_800, "2h30m"),
            (&held, &hour, Some("Done"), true, 5_400, "1h30m"),
            (&held, &hour, Some("Done"), true, 10_800, "due"),
            (&none, &hour, Some("DeadlineExceeded"), false, 9_000, "release"),
            (&none, &none, Some("DeadlineExceeded"), false, 9_000, "never"),
            (&copy, &hour, Some("Done"), true, 9_000, "-"),
            (&going, &hour, Some("Done"), true, 9_000, "-"),
            (&none, &elsewhere, Some("Done"), true, 9_000, "-"),
        ] {
            let ttl = Ttl::of(&job(metadata, spec, reason), released, Timestamp(now));
            assert_eq!(ttl.to_string(), expected, "{metadata} {spec} {reason:?} {now}");
        }
    }

    #[test]
    fn programs_tell_a_hold_from_a_ttl() {
        let held = Ttl::Held { due: Timestamp(3_600), left_seconds: 5 };
        let expected = json!({"state": "Held", "due": "1970-01-01T01:00:00Z", "leftSeconds": 5});
        assert_eq!(serde_json::to_value(held).unwrap(), expected);
    }
}
