//! What a TrainJob's status says: conditions and counts.
//!
//! Conditions come from the job's own `spec.suspend`, from the end of its JobSet, from its deadline and
//! from what it waits for. Counts are the JobSet's. A status is written only when it differs from the
//! stored one, and only in the fields that differ; `trainerStatus`, which others write, is never
//! touched.
//!
//! `Waiting` is the only condition that Kubeflow Trainer does not have: it is there only while a job
//! cannot go on, and says why; a job that runs has the conditions it would have there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use trainjob_api::{
    conditions::{self, Desired},
    time::Timestamp,
    trainjob::JobStatus,
};

use crate::{
    action::{StatusWrite, Urgency},
    facts::{JobFacts, JobSetEnd, JobSetFacts},
};

/// Type of the condition of a job that cannot go on.
pub const WAITING: &str = "Waiting";

/// The `Suspended` condition that `spec.suspend` asks for: none for a job that never was suspended.
pub fn mirror_suspension(conditions: &mut Vec<Condition>, suspend: bool, now: Timestamp) {
    let held = conditions::find_true(conditions, conditions::SUSPENDED).is_some();
    let (reason, message) = match (suspend, held) {
        (true, _) => (conditions::REASON_SUSPENDED, conditions::MESSAGE_SUSPENDED),
        (false, true) => (conditions::REASON_RESUMED, conditions::MESSAGE_RESUMED),
        (false, false) => return,
    };
    let desired = Desired { kind: conditions::SUSPENDED, holds: suspend, reason, message };
    conditions::set(conditions, desired, now);
}

/// The `Waiting` condition: present, with reason and message, only while the job cannot go on.
pub fn mirror_waiting(conditions: &mut Vec<Condition>, why: Option<(&str, &str)>, now: Timestamp) {
    match why {
        Some((reason, message)) => {
            let desired = Desired { kind: WAITING, holds: true, reason, message };
            conditions::set(conditions, desired, now);
        }
        None => conditions.retain(|condition| condition.type_ != WAITING),
    }
}

/// The terminal condition that the end of a JobSet gives: a copy of the JobSet's own.
pub fn finish_with_job_set(conditions: &mut Vec<Condition>, end: &JobSetEnd) {
    let kind = if end.completed { conditions::COMPLETE } else { conditions::FAILED };
    conditions.retain(|condition| condition.type_ != kind && condition.type_ != WAITING);
    conditions.push(Condition { type_: kind.into(), ..end.condition.clone() });
}

/// The terminal condition of a job that failed for `reason`.
pub fn fail(conditions: &mut Vec<Condition>, reason: &str, message: &str, now: Timestamp) {
    conditions.retain(|condition| condition.type_ != WAITING);
    let desired = Desired { kind: conditions::FAILED, holds: true, reason, message };
    conditions::set(conditions, desired, now);
}

/// The counts that `jobsStatus` is to show: the JobSet's, or what is stored when there is none.
#[must_use]
pub fn counts<'a>(job: &'a JobFacts, job_set: Option<&'a JobSetFacts>) -> &'a [JobStatus] {
    job_set.map_or(&job.jobs_status, |job_set| &job_set.jobs_status)
}

/// The write that brings the stored status to the given one; `None` when nothing differs.
///
/// `conditions` is `None` where they are not to change, as for a finished job.
#[must_use]
pub fn write(
    job: &JobFacts,
    stored_conditions: &[Condition],
    conditions: Option<Vec<Condition>>,
    jobs_status: &[JobStatus],
) -> Option<StatusWrite> {
    let conditions = conditions.filter(|desired| desired != stored_conditions);
    let jobs_status = (jobs_status != job.jobs_status).then(|| jobs_status.to_vec());
    let urgency = match (&conditions, &jobs_status) {
        (None, None) => return None,
        (None, Some(counts)) if active(counts) > 0 || active(&job.jobs_status) == 0 => {
            Urgency::Coalesced
        }
        _ => Urgency::AtOnce,
    };
    Some(StatusWrite {
        uid: job.uid.clone(),
        resource_version: job.resource_version.clone(),
        conditions,
        jobs_status,
        urgency,
        deadline_due: None,
    })
}

fn active(counts: &[JobStatus]) -> i64 {
    counts.iter().map(|count| i64::from(count.active)).sum()
}
