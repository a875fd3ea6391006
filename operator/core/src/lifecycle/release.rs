//! Release: when the resources of a job that its deadline failed are free.
//!
//! A deadline exists to free accelerators, and only running Pods hold them. A job is released when no
//! JobSet of its UID exists and no Pod that one made is still running (R1–R4 of `docs/semantics.md`).
//! Neither half proves the other: a garbage collector that had not yet noticed the Pods lets the
//! JobSet go first, and so does somebody else's background deletion. So after the JobSet is gone, the
//! Pods are asked for.
//!
//! The goal is derived anew from what is stored on every pass; nothing has to survive a restart.

use trainjob_api::time::Timestamp;

use crate::{now::Now, observed::Reading, running_pods::RunningPods};

/// Seconds after which a JobSet that is still terminating is looked into. Twice the default grace
/// period of a Pod: until then its Pods are simply taking their time.
pub const BLOCKED_AFTER_SECONDS: i64 = 60;

/// What the release rule needs to know of a job that its deadline failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The job's own JobSet, if it exists.
    pub job_set: Option<JobSet>,
    /// What was last read of its Pods.
    pub pods: Pods,
}

/// The job's own JobSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobSet {
    /// When its deletion began; `None` if it has not.
    pub terminating_since: Option<Timestamp>,
}

/// What was last read of the Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pods {
    /// Nothing was read yet.
    Unknown,
    /// At least one is running.
    Running,
    /// None is running.
    Gone,
}

impl From<&Reading<RunningPods>> for Pods {
    fn from(reading: &Reading<RunningPods>) -> Self {
        match reading {
            Reading::NotRead => Self::Unknown,
            Reading::Found(_) => Self::Running,
            Reading::Absent => Self::Gone,
        }
    }
}

/// What is to be done for the release at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Delete the JobSet.
    DeleteJobSet,
    /// The JobSet is going; look into it at `check_at` if it is still there.
    Terminating {
        /// When to look.
        check_at: Timestamp,
    },
    /// Ask for the Pods.
    CheckPods,
    /// Pods still run: ask again later.
    PodsRunning,
    /// The Pods are gone, but somebody's finalizer keeps the JobSet.
    Blocked,
    /// Nothing holds resources any more.
    Released,
}

/// Decides what is to be done for the release of a job at `now`.
///
/// ```
/// use trainjob_api::time::Timestamp;
/// use trainjob_core::{
///     Now,
///     lifecycle::release::{Decision, JobSet, Pods, Subject, decide},
/// };
///
/// let (now, job_set) = (Now::at(Timestamp(1_000)), Some(JobSet { terminating_since: None }));
/// let exceeded = Subject { job_set, pods: Pods::Unknown };
/// assert_eq!(decide(&exceeded, now), Decision::DeleteJobSet);
/// // That the JobSet is gone does not prove that its Pods are.
/// let without_job_set = Subject { job_set: None, ..exceeded };
/// assert_eq!(decide(&without_job_set, now), Decision::CheckPods);
/// let free = Subject { pods: Pods::Gone, ..without_job_set };
/// assert_eq!(decide(&free, now), Decision::Released);
/// ```
#[must_use]
pub fn decide(job: &Subject, now: Now) -> Decision {
    match (job.job_set, job.pods) {
        (Some(JobSet { terminating_since: None }), _) => Decision::DeleteJobSet,
        (Some(JobSet { terminating_since: Some(since) }), pods) => {
            let check_at = since.plus(BLOCKED_AFTER_SECONDS);
            match pods {
                _ if !now.has_come(check_at) => Decision::Terminating { check_at },
                Pods::Unknown => Decision::CheckPods,
                Pods::Running => Decision::PodsRunning,
                Pods::Gone => Decision::Blocked,
            }
        }
        (None, Pods::Unknown) => Decision::CheckPods,
        (None, Pods::Running) => Decision::PodsRunning,
        (None, Pods::Gone) => Decision::Released,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    #[test]
    fn a_job_is_released_only_when_both_jobset_and_pods_are_seen_gone() {
        let here = Some(JobSet { terminating_since: None });
        let going = Some(JobSet { terminating_since: Some(Timestamp(990)) });
        let stuck = Some(JobSet { terminating_since: Some(Timestamp(940)) });
        let check_at = Timestamp(1_050);
        for (job_set, pods, expected) in [
            (here, Pods::Unknown, Decision::DeleteJobSet),
            (here, Pods::Gone, Decision::DeleteJobSet),
            (going, Pods::Unknown, Decision::Terminating { check_at }),
            (going, Pods::Gone, Decision::Terminating { check_at }),
            (stuck, Pods::Unknown, Decision::CheckPods),
            (stuck, Pods::Running, Decision::PodsRunning),
            (stuck, Pods::Gone, Decision::Blocked),
            (None, Pods::Unknown, Decision::CheckPods),
            (None, Pods::Running, Decision::PodsRunning),
            (None, Pods::Gone, Decision::Released),
        ] {
            assert_eq!(
                decide(&Subject { job_set, pods }, Now::at(NOW)),
                expected,
                "{job_set:?} {pods:?}"
            );
        }
    }
}
