//! How a TrainJob is, in one word.

use std::fmt;

use serde::{Serialize, Serializer};
use trainjob_api::{
    TrainJob,
    conditions::{self, WAITING},
    constants::KUEUE_QUEUE_LABEL,
};
use trainjob_core::{
    facts::{JobFacts, Outcome},
    job_stats::State,
};

/// How a TrainJob is: of those that fit, the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It cannot be read, because it is older or newer than its schema.
    Unreadable,
    /// Another controller manages it.
    ManagedElsewhere,
    /// It has a `deletionTimestamp`.
    Deleting,
    /// Its deadline has failed it, and Pods of it still run, or its condition `Waiting` says what else is left.
    Releasing,
    /// Its deadline has failed it.
    DeadlineExceeded,
    /// It failed for another reason.
    Failed,
    /// It succeeded.
    Complete,
    /// It cannot go on, as its condition `Waiting` says.
    Waiting,
    /// It is suspended and has a queue of Kueue.
    Queued,
    /// It is suspended.
    Suspended,
    /// It is to run, and none of it does yet.
    Pending,
    /// It runs, or a part of it has succeeded already.
    Running,
}

impl Phase {
    /// How a job is. `runs` is whether Pods of it have not ended.
    #[must_use]
    pub fn of(job: &TrainJob, facts: &JobFacts, runs: bool) -> Self {
        match State::of(facts) {
            State::ManagedElsewhere => Self::ManagedElsewhere,
            State::Terminating => Self::Deleting,
            State::Finished(Outcome::DeadlineExceeded) if runs || waits(job) => Self::Releasing,
            State::Finished(Outcome::DeadlineExceeded) => Self::DeadlineExceeded,
            State::Finished(Outcome::Failed) => Self::Failed,
            State::Finished(Outcome::Complete) => Self::Complete,
            State::Suspended | State::Queued | State::Running if waits(job) => Self::Waiting,
            State::Suspended if queue(job).is_some() => Self::Queued,
            State::Suspended => Self::Suspended,
            State::Queued => Self::Pending,
            State::Running => Self::Running,
        }
    }

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "Unreadable",
            Self::ManagedElsewhere => "ManagedElsewhere",
            Self::Deleting => "Deleting",
            Self::Releasing => "Releasing",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::Failed => "Failed",
            Self::Complete => "Complete",
            Self::Queued => "Queued",
            Self::Suspended => "Suspended",
            Self::Waiting => "Waiting",
            Self::Pending => "Pending",
            Self::Running => "Running",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The queue of Kueue that a job asks for.
#[must_use]
pub fn queue(job: &TrainJob) -> Option<&str> {
    job.metadata.labels.as_ref()?.get(KUEUE_QUEUE_LABEL).map(String::as_str)
}

fn waits(job: &TrainJob) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions::find_true(conditions.unwrap_or_default(), WAITING).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn phase(job: &Value, runs: bool) -> Phase {
        let job: TrainJob = serde_json::from_value(job.clone()).unwrap();
        Phase::of(&job, &JobFacts::of(&job), runs)
    }

    fn condition(kind: &str, reason: &str) -> Value {
        let at = "2026-01-01T00:00:00Z";
        json!({"conditions": [{"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": at}]})
    }

    #[test]
    fn a_job_has_the_first_phase_that_fits() {
        let running = json!({"jobsStatus": [{"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}]});
        let queued = json!({"labels": {"kueue.x-k8s.io/queue-name": "q"}});
        let spec = |more: Value| {
            let mut spec = json!({"runtimeRef": {"name": "r"}});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            spec
        };
        let plain = || spec(json!({}));
        let exceeded = condition("Failed", "DeadlineExceeded");
        let with_waiting = |mut status: Value| {
            let waiting = condition("Waiting", "JobSetTerminating")["conditions"][0].take();
            status["conditions"].as_array_mut().unwrap().push(waiting);
            status
        };
        for (metadata, spec, status, runs, expected) in [
            (json!({}), plain(), json!({}), false, Phase::Pending),
            (json!({}), plain(), json!({}), true, Phase::Pending),
            (json!({}), plain(), running, true, Phase::Running),
            (json!({}), plain(), condition("Waiting", "RuntimeNotFound"), false, Phase::Waiting),
            (json!({}), spec(json!({"suspend": true})), json!({}), false, Phase::Suspended),
            (queued.clone(), spec(json!({"suspend": true})), json!({}), false, Phase::Queued),
            (
                queued.clone(),
                spec(json!({"suspend": true})),
                condition("Waiting", "BuildFailed"),
                false,
                Phase::Waiting,
            ),
            (queued, plain(), json!({}), false, Phase::Pending),
            (json!({}), plain(), condition("Complete", "Done"), true, Phase::Complete),
            (json!({}), plain(), condition("Failed", "Any"), true, Phase::Failed),
            (json!({}), plain(), exceeded.clone(), true, Phase::Releasing),
            (json!({}), plain(), exceeded.clone(), false, Phase::DeadlineExceeded),
            (json!({}), plain(), with_waiting(exceeded), false, Phase::Releasing),
            (json!({}), plain(), with_waiting(condition("Failed", "Any")), false, Phase::Failed),
            (
                json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
                plain(),
                condition("Complete", "Done"),
                false,
                Phase::Deleting,
            ),
            (
                json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
                spec(json!({"managedBy": "kueue.x-k8s.io/multikueue"})),
                json!({}),
                false,
                Phase::ManagedElsewhere,
            ),
        ] {
            let job = json!({"metadata": metadata, "spec": spec, "status": status});
            assert_eq!(phase(&job, runs), expected, "{job}");
        }
    }
}
