//! The facts about a JobSet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use trainjob_api::{
    conditions::{self, JOBSET_COMPLETED, JOBSET_FAILED},
    jobset::{JobSetView, ReplicatedJobStatus},
    lifecycle::v1alpha1::ACCOUNTING_FINALIZER,
    time::Timestamp,
    v1alpha1::train_job::JobStatus,
};

use super::{
    owner::controlling_train_job,
    train_job::{JobFacts, instant},
};

/// The facts about a JobSet.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSetFacts {
    /// The UID.
    pub uid: String,
    /// The version these facts were read from.
    pub resource_version: String,
    /// `metadata.generation`: counts the changes of its spec.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created_at: Timestamp,
    /// `metadata.deletionTimestamp`.
    pub terminating_since: Option<Timestamp>,
    /// UID of the TrainJob that is its controller, if one is.
    pub train_job_uid: Option<String>,
    /// `spec.suspend`.
    pub suspended: bool,
    /// Whether it has been suspended all its life, so that no work is lost with it.
    pub never_ran: bool,
    /// Whether its Pods are created with the finalizer of accounting.
    pub holds_pods: bool,
    /// How it ended, with the condition that says so.
    pub ended: Option<Box<JobSetEnd>>,
    /// Its counts, as a TrainJob's status shows them.
    pub jobs_status: Vec<JobStatus>,
}

/// How a JobSet ended.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSetEnd {
    /// Whether it completed; otherwise it failed.
    pub completed: bool,
    /// The condition that says so.
    pub condition: Condition,
}

impl JobSetFacts {
    /// The facts in a stored JobSet.
    #[must_use]
    pub fn of(job_set: &JobSetView) -> Self {
        let metadata = &job_set.metadata;
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            created_at: instant(metadata.creation_timestamp.as_ref()),
            terminating_since: metadata.deletion_timestamp.as_ref().map(Timestamp::from),
            train_job_uid: controlling_train_job(metadata).map(|owner| owner.uid.clone()),
            suspended: job_set.spec.suspend,
            never_ran: never_ran(job_set),
            holds_pods: job_set.spec.pod_finalizers().any(|it| it == ACCOUNTING_FINALIZER),
            ended: ended(&job_set.status.conditions),
            jobs_status: job_set.status.replicated_jobs_status.iter().map(job_status).collect(),
        }
    }
}

/// A spec that never changed was suspended from the start. (JobSet's own record of the suspension proves
/// less: with a startup policy it says that a JobSet is suspended until all its replicated jobs have begun.)
fn never_ran(job_set: &JobSetView) -> bool {
    let status = &job_set.status;
    let idle = |it: &ReplicatedJobStatus| {
        [it.active, it.ready, it.succeeded, it.failed].iter().all(|count| *count == 0)
    };
    let from_the_start = job_set.metadata.generation == Some(1);
    job_set.spec.suspend && status.replicated_jobs_status.iter().all(idle) && from_the_start
}

impl JobSetFacts {
    /// Whether it is the job's own and was made after the job's end, by a creation that was under way
    /// then (D4). One that has ended itself runs nothing; its times come from another clock.
    #[must_use]
    pub fn may_run_after_the_end(&self, job: &JobFacts) -> bool {
        let own = self.train_job_uid.as_ref() == Some(&job.uid);
        let late = job.finished.is_some_and(|finished| self.created_at > finished.at);
        own && late && self.ended.is_none()
    }
}

/// Completion and failure in the same second: completion, because the work is there.
fn ended(conditions: &[Condition]) -> Option<Box<JobSetEnd>> {
    let completed = conditions::find_true(conditions, JOBSET_COMPLETED);
    let failed = conditions::find_true(conditions, JOBSET_FAILED);
    let at = |condition: &Condition| Timestamp::from(&condition.last_transition_time);
    let (completed, condition) = match (completed, failed) {
        (Some(completed), Some(failed)) if at(failed) < at(completed) => (false, failed),
        (Some(completed), _) => (true, completed),
        (None, Some(failed)) => (false, failed),
        (None, None) => return None,
    };
    Some(Box::new(JobSetEnd { completed, condition: condition.clone() }))
}

fn job_status(status: &ReplicatedJobStatus) -> JobStatus {
    JobStatus {
        name: status.name.clone(),
        ready: status.ready,
        succeeded: status.succeeded,
        failed: status.failed,
        active: status.active,
        suspended: status.suspended,
    }
}
