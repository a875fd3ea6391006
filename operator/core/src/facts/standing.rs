//! How a job stands, as its facts say.

use trainjob_api::{
    lifecycle::v1alpha1::hold::HoldWish, time::Timestamp, v1alpha1::train_job::JobStatus,
};

use super::train_job::{Finished, JobFacts, Outcome, SuspendedCondition};

/// Those of the facts about a TrainJob that deadline, TTL and state depend on. All are of fixed size, so that a hundred
/// thousand are looked at quickly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; all combinations occur"
)]
pub struct Standing {
    /// See [`JobFacts::created_at`].
    pub created_at: Timestamp,
    /// See [`JobFacts::terminating`].
    pub terminating: bool,
    /// See [`JobFacts::managed_elsewhere`].
    pub managed_elsewhere: bool,
    /// See [`JobFacts::remote_copy`].
    pub remote_copy: bool,
    /// See [`JobFacts::suspend`].
    pub suspend: bool,
    /// Whether its counts say that it [runs](is_running).
    pub runs: bool,
    /// See [`JobFacts::deadline`].
    pub deadline: Option<i64>,
    /// See [`JobFacts::ttl`].
    pub ttl: Option<u32>,
    /// See [`JobFacts::hold`].
    pub hold: Option<HoldWish>,
    /// See [`JobFacts::finished`].
    pub finished: Option<Finished>,
    /// See [`JobFacts::suspended`].
    pub suspended: Option<SuspendedCondition>,
}

impl Standing {
    /// Whether it is one that its deadline failed, so that it matters whether it is released.
    #[must_use]
    pub fn has_release(&self) -> bool {
        let by_deadline = |finished: Finished| finished.outcome == Outcome::DeadlineExceeded;
        !self.managed_elsewhere && self.finished.is_some_and(by_deadline)
    }
}

impl From<&JobFacts> for Standing {
    fn from(job: &JobFacts) -> Self {
        Self {
            created_at: job.created_at,
            terminating: job.terminating,
            managed_elsewhere: job.managed_elsewhere,
            remote_copy: job.remote_copy,
            suspend: job.suspend,
            runs: is_running(&job.jobs_status),
            deadline: job.deadline,
            ttl: job.ttl,
            hold: job.hold,
            finished: job.finished,
            suspended: job.suspended,
        }
    }
}

impl From<&Self> for Standing {
    fn from(standing: &Self) -> Self {
        *standing
    }
}

/// Whether a job with these counts runs: one of its parts is ready, or has succeeded already.
#[must_use]
pub fn is_running(counts: &[JobStatus]) -> bool {
    counts.iter().any(|part| part.ready > 0 || part.succeeded > 0)
}
