//! The facts about a TrainJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use trainjob_api::{
    TrainJob,
    conditions::{self, COMPLETE, FAILED, SUSPENDED, WAITING},
    constants::{MANAGED_BY, MULTIKUEUE_ORIGIN_LABEL},
    lifecycle::v1alpha1::hold::HoldWish,
    time::Timestamp,
    v1alpha1::train_job::JobStatus,
};

use super::key::ObjectKey;

/// The facts about a TrainJob.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; all combinations occur"
)]
pub struct JobFacts {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The UID: which of all objects that ever had this name.
    pub uid: String,
    /// The version these facts were read from; every write about the job is fenced by it.
    pub resource_version: String,
    /// `metadata.creationTimestamp`.
    pub created_at: Timestamp,
    /// Whether it has a `deletionTimestamp`.
    pub terminating: bool,
    /// Whether `spec.managedBy` names somebody else. Such a job is never touched.
    pub managed_elsewhere: bool,
    /// Whether it is a copy that MultiKueue made; its manager removes it.
    pub remote_copy: bool,
    /// `spec.suspend`.
    pub suspend: bool,
    /// `spec.activeDeadlineSeconds`, in seconds, at least 1.
    pub deadline: Option<i64>,
    /// `spec.ttlSecondsAfterFinished`, in seconds.
    pub ttl: Option<u32>,
    /// The hold that its annotations ask for.
    pub hold: Option<HoldWish>,
    /// A field whose stored value counts as unset.
    pub out_of_range: Option<OutOfRange>,
    /// How and when it finished.
    pub finished: Option<Finished>,
    /// The stored `Suspended` condition.
    pub suspended: Option<SuspendedCondition>,
    /// The stored `Waiting` condition.
    pub waiting: Option<Box<WaitingCondition>>,
    /// The stored `status.jobsStatus`.
    pub jobs_status: Vec<JobStatus>,
}

/// A stored value that the schema would have refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfRange {
    /// The field, such as `spec.activeDeadlineSeconds`.
    pub field: &'static str,
    /// The value.
    pub value: i64,
    /// The least value that has a meaning.
    pub minimum: i64,
}

/// How and when a TrainJob finished. Final from the first such condition on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// `lastTransitionTime` of the terminal condition.
    pub at: Timestamp,
    /// Which condition it is.
    pub outcome: Outcome,
}

/// How a TrainJob finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// `Complete`.
    Complete,
    /// `Failed` for any reason but the deadline.
    Failed,
    /// `Failed` with reason `DeadlineExceeded`: its JobSet must go and its Pods must be seen gone.
    DeadlineExceeded,
}

/// The stored `Suspended` condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspendedCondition {
    /// Whether its status is True.
    pub holds: bool,
    /// Its `lastTransitionTime`.
    pub since: Timestamp,
}

/// The stored `Waiting` condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCondition {
    /// Where it stands in the list of conditions.
    pub index: usize,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
}

impl OutOfRange {
    /// This value of `spec.activeDeadlineSeconds`.
    #[must_use]
    pub const fn deadline(value: i64) -> Self {
        Self { field: "spec.activeDeadlineSeconds", value, minimum: 1 }
    }

    /// This value of `spec.ttlSecondsAfterFinished`.
    #[must_use]
    pub const fn ttl(value: i64) -> Self {
        Self { field: "spec.ttlSecondsAfterFinished", value, minimum: 0 }
    }
}

impl JobFacts {
    /// The facts in a stored TrainJob.
    #[must_use]
    pub fn of(job: &TrainJob) -> Self {
        let status = job.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let (deadline, deadline_problem) = deadline(job.spec.active_deadline_seconds);
        let (ttl, ttl_problem) = ttl(job.spec.ttl_seconds_after_finished);
        let finished = finished(conditions);
        Self {
            key: ObjectKey::of(&job.metadata),
            uid: job.metadata.uid.clone().unwrap_or_default(),
            resource_version: job.metadata.resource_version.clone().unwrap_or_default(),
            created_at: instant(job.metadata.creation_timestamp.as_ref()),
            terminating: job.metadata.deletion_timestamp.is_some(),
            managed_elsewhere: job
                .spec
                .managed_by
                .as_deref()
                .is_some_and(|name| name != MANAGED_BY),
            remote_copy: has_label(&job.metadata, MULTIKUEUE_ORIGIN_LABEL),
            suspend: job.spec.suspend.unwrap_or(false),
            deadline,
            ttl,
            hold: job.metadata.annotations.as_ref().and_then(HoldWish::read),
            out_of_range: deadline_problem.or(ttl_problem),
            finished,
            suspended: conditions::find(conditions, SUSPENDED).map(|condition| {
                SuspendedCondition {
                    holds: condition.status == "True",
                    since: Timestamp::from(&condition.last_transition_time),
                }
            }),
            waiting: waiting(conditions).map(Box::new),
            jobs_status: status.and_then(|status| status.jobs_status.clone()).unwrap_or_default(),
        }
    }
}

fn waiting(conditions: &[Condition]) -> Option<WaitingCondition> {
    let index = conditions.iter().position(|condition| condition.type_ == WAITING)?;
    let Condition { reason, message, .. } = conditions.get(index)?.clone();
    Some(WaitingCondition { index, reason, message })
}

fn deadline(stored: Option<i64>) -> (Option<i64>, Option<OutOfRange>) {
    match stored {
        Some(value) if value >= 1 => (Some(value), None),
        None => (None, None),
        Some(value) => (None, Some(OutOfRange::deadline(value))),
    }
}

fn ttl(stored: Option<i32>) -> (Option<u32>, Option<OutOfRange>) {
    let Some(value) = stored else { return (None, None) };
    if let Ok(seconds) = u32::try_from(value) {
        return (Some(seconds), None);
    }
    (None, Some(OutOfRange::ttl(i64::from(value))))
}

fn finished(conditions: &[Condition]) -> Option<Finished> {
    end(conditions).map(|(finished, _)| finished)
}

/// What the terminal condition that became true first says, and its reason; of two in the same second, the
/// first in the list.
pub(crate) fn end(conditions: &[Condition]) -> Option<(Finished, &str)> {
    let terminal = conditions.iter().filter(|condition| condition.status == "True");
    let first = terminal
        .filter(|condition| condition.type_ == COMPLETE || condition.type_ == FAILED)
        .min_by_key(|condition| Timestamp::from(&condition.last_transition_time))?;
    let outcome = match (first.type_.as_str(), first.reason.as_str()) {
        (COMPLETE, _) => Outcome::Complete,
        (_, conditions::REASON_DEADLINE_EXCEEDED) => Outcome::DeadlineExceeded,
        _ => Outcome::Failed,
    };
    let finished = Finished { at: Timestamp::from(&first.last_transition_time), outcome };
    Some((finished, &first.reason))
}

pub(super) fn instant(time: Option<&Time>) -> Timestamp {
    time.map(Timestamp::from).unwrap_or_default()
}

fn has_label(metadata: &ObjectMeta, label: &str) -> bool {
    metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(label))
}

#[cfg(test)]
impl JobFacts {
    /// A job that was created at 1000, with a deadline of 60 seconds and a TTL of 30.
    pub(crate) fn unfinished() -> Self {
        Self {
            key: ObjectKey::new("ns", "tj"),
            uid: "U".into(),
            resource_version: "1".into(),
            created_at: Timestamp(1_000),
            terminating: false,
            managed_elsewhere: false,
            remote_copy: false,
            suspend: false,
            deadline: Some(60),
            ttl: Some(30),
            hold: None,
            out_of_range: None,
            finished: None,
            suspended: None,
            waiting: None,
            jobs_status: vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::jobset::JobSetView;

    use super::*;
    use crate::facts::JobSetFacts;

    fn job(fields: &Value) -> JobFacts {
        let mut job = json!({"metadata": {}, "spec": {"runtimeRef": {"name": "r"}}});
        job["spec"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        JobFacts::of(&serde_json::from_value(job).unwrap())
    }

    #[test]
    fn a_deadline_is_at_least_one_second_and_anything_else_counts_as_unset() {
        for (stored, deadline, reported) in [
            (json!(null), None, None),
            (json!(1), Some(1), None),
            (json!(i64::MAX), Some(i64::MAX), None),
            (json!(0), None, Some(0)),
            (json!(-1), None, Some(-1)),
            (json!(i64::MIN), None, Some(i64::MIN)),
        ] {
            let job = job(&json!({"activeDeadlineSeconds": stored}));
            assert_eq!(job.deadline, deadline, "{stored}");
            assert_eq!(job.out_of_range.map(|problem| problem.value), reported, "{stored}");
        }
    }

    #[test]
    fn a_ttl_is_at_least_zero_and_anything_else_counts_as_unset() {
        for (stored, ttl, reported) in [
            (json!(null), None, None),
            (json!(0), Some(0), None),
            (json!(i32::MAX), Some(2_147_483_647), None),
            (json!(-1), None, Some(-1)),
            (json!(i32::MIN), None, Some(-2_147_483_648)),
        ] {
            let job = job(&json!({"ttlSecondsAfterFinished": stored}));
            assert_eq!(job.ttl, ttl, "{stored}");
            assert_eq!(job.out_of_range.map(|problem| problem.value), reported, "{stored}");
        }
    }

    #[test]
    fn of_two_fields_out_of_range_one_is_reported() {
        let both = job(&json!({"activeDeadlineSeconds": -1, "ttlSecondsAfterFinished": -2}));
        assert_eq!((both.deadline, both.ttl), (None, None));
        assert_eq!(both.out_of_range.unwrap().field, "spec.activeDeadlineSeconds");
    }

    #[test]
    fn a_job_is_this_operator_s_unless_it_names_another() {
        for (stored, elsewhere) in [
            (json!(null), false),
            (json!("trainer.kubeflow.org/trainjob-controller"), false),
            (json!("kueue.x-k8s.io/multikueue"), true),
            (json!("example.com/unknown"), true),
        ] {
            let job = job(&json!({"managedBy": stored}));
            assert_eq!(job.managed_elsewhere, elsewhere, "{stored}");
        }
    }

    #[test]
    fn a_hold_that_cannot_be_read_is_not_the_same_as_none() {
        for (annotations, expected) in [
            (json!(null), None),
            (json!({"example.com/other": "1"}), None),
            (
                json!({"lifecycle.trainjob.dev/hold-until": "1970-01-01T00:01:00Z"}),
                Some(HoldWish::Until(Timestamp(60))),
            ),
            (json!({"lifecycle.trainjob.dev/hold-until": "soon"}), Some(HoldWish::Unreadable)),
        ] {
            let job = json!({
                "metadata": {"annotations": annotations}, "spec": {"runtimeRef": {"name": "r"}},
            });
            let job = JobFacts::of(&serde_json::from_value(job).unwrap());
            assert_eq!(job.hold, expected, "{annotations}");
        }
    }

    #[test]
    fn an_object_without_metadata_has_facts_all_the_same() {
        let facts = JobSetFacts::of(&JobSetView::default());
        assert_eq!((facts.train_job_uid, facts.ended, facts.suspended), (None, None, false));
        assert_eq!(job(&json!({})).finished, None);
    }
}
