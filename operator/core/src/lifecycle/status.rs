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
    TrainJob,
    conditions::{self, Reason, WAITING},
    time::Timestamp,
    v1alpha1::train_job::JobStatus,
};

use crate::{
    action::{StatusWrite, Urgency},
    facts::{JobFacts, JobSetEnd, JobSetFacts},
};

/// The conditions that are stored of a job.
pub(crate) fn stored_conditions(manifest: &TrainJob) -> &[Condition] {
    manifest.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

/// The `Suspended` condition that `spec.suspend` asks for: none for a job that never was suspended.
pub fn mirror_suspension(conditions: &mut Vec<Condition>, suspend: bool, now: Timestamp) {
    let held = conditions::find_true(conditions, conditions::SUSPENDED).is_some();
    let (reason, message) = match (suspend, held) {
        (true, _) => (Reason::Suspended, conditions::MESSAGE_SUSPENDED),
        (false, true) => (Reason::Resumed, conditions::MESSAGE_RESUMED),
        (false, false) => return,
    };
    conditions::set(conditions, (reason, message), suspend, now);
}

/// The `Waiting` condition: present, with reason and message, only while the job cannot go on.
pub fn mirror_waiting(
    conditions: &mut Vec<Condition>,
    why: Option<(Reason, &str)>,
    now: Timestamp,
) {
    match why {
        Some(why) => conditions::set(conditions, why, true, now),
        None => conditions.retain(|condition| condition.type_ != WAITING),
    }
}

/// The terminal condition that the end of a JobSet gives: a copy of the JobSet's own.
pub fn finish_with_job_set(conditions: &mut Vec<Condition>, end: &JobSetEnd) {
    let kind = if end.completed { conditions::COMPLETE } else { conditions::FAILED };
    conditions.retain(|condition| condition.type_ != kind && condition.type_ != WAITING);
    conditions.push(Condition { type_: kind.into(), ..end.condition.clone() });
}

/// The terminal condition of a job that failed for this reason.
pub fn fail(conditions: &mut Vec<Condition>, why: (Reason, &str), now: Timestamp) {
    conditions.retain(|condition| condition.type_ != WAITING);
    conditions::set(conditions, why, true, now);
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

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Timestamp = Timestamp(1_000);
    const NOW: Timestamp = Timestamp(2_000);

    fn condition(kind: &str, holds: bool, reason: &str) -> Condition {
        Condition {
            type_: kind.into(),
            status: if holds { "True" } else { "False" }.into(),
            reason: reason.into(),
            message: String::new(),
            last_transition_time: BEFORE.into(),
            observed_generation: None,
        }
    }

    /// Type, status, reason and time of each condition.
    fn brief(list: &[Condition]) -> Vec<(&str, &str, &str, i64)> {
        let since = |c: &Condition| Timestamp::from(&c.last_transition_time).0;
        list.iter().map(|c| (&*c.type_, &*c.status, &*c.reason, since(c))).collect()
    }

    #[test]
    fn a_job_that_never_was_suspended_does_not_say_so() {
        let suspended = condition("Suspended", true, "Suspended");
        let resumed = condition("Suspended", false, "Resumed");
        for (stored, suspend, expected) in [
            (vec![], false, vec![]),
            (vec![], true, vec![("Suspended", "True", "Suspended", 2_000)]),
            (vec![suspended.clone()], true, vec![("Suspended", "True", "Suspended", 1_000)]),
            (vec![suspended], false, vec![("Suspended", "False", "Resumed", 2_000)]),
            (vec![resumed.clone()], false, vec![("Suspended", "False", "Resumed", 1_000)]),
            (vec![resumed], true, vec![("Suspended", "True", "Suspended", 2_000)]),
        ] {
            let mut list = stored.clone();
            mirror_suspension(&mut list, suspend, NOW);
            assert_eq!(brief(&list), expected, "{stored:?}, {suspend}");
        }
    }

    #[test]
    fn a_job_waits_from_the_first_obstacle_to_the_last() {
        let mut list = vec![condition("Other", true, "Other")];
        let other = ("Other", "True", "Other", 1_000);
        mirror_waiting(&mut list, Some((Reason::BuildFailed, "")), Timestamp(1_500));
        assert_eq!(brief(&list), [other, ("Waiting", "True", "BuildFailed", 1_500)]);
        mirror_waiting(&mut list, Some((Reason::NameConflict, "")), NOW);
        assert_eq!(brief(&list), [other, ("Waiting", "True", "NameConflict", 1_500)]);
        mirror_waiting(&mut list, None, NOW);
        assert_eq!(brief(&list), [other]);
    }

    #[test]
    fn the_end_comes_last_and_nothing_waits_any_more() {
        let stored = [
            condition("Complete", false, "NotYet"),
            condition("Waiting", true, "BuildFailed"),
            condition("Other", true, "Other"),
        ];
        let end = JobSetEnd { completed: true, condition: condition("Completed", true, "Done") };
        let mut list = stored.to_vec();
        finish_with_job_set(&mut list, &end);
        let other = ("Other", "True", "Other", 1_000);
        assert_eq!(brief(&list), [other, ("Complete", "True", "Done", 1_000)]);

        let mut list = stored.to_vec();
        fail(&mut list, (Reason::DeadlineExceeded, ""), NOW);
        let not_yet = ("Complete", "False", "NotYet", 1_000);
        assert_eq!(brief(&list), [not_yet, other, ("Failed", "True", "DeadlineExceeded", 2_000)]);
    }
}
