//! What `status` shows of one TrainJob.

use std::io;

use serde::Serialize;
use trainjob_api::{TrainJob, time::Timestamp};
use trainjob_core::{facts::JobFacts, lifecycle::deadline::Clock};

use crate::{
    deadline::Deadline,
    gpus::HeldByJob,
    phase::{self, Phase},
    read::Listed,
    ttl::Ttl,
};

/// What `status` shows of one TrainJob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How it is.
    pub phase: Phase,
    /// How long it may still run.
    pub deadline: Deadline,
    /// How long it stays after its end.
    pub ttl: Ttl,
    /// How many GPUs its Pods hold.
    pub gpus: u64,
    /// The queue of Kueue that it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
}

impl Row {
    /// What is shown of an object at `now`. `clock` is that of the cluster, if it is known.
    #[must_use]
    pub fn of(listed: &Listed, held: &HeldByJob, clock: Option<Clock>, now: Timestamp) -> Self {
        match listed {
            Listed::Job(job) => Self::of_job(job, held, clock, now),
            Listed::Unreadable(key) => Self {
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                phase: Phase::Unreadable,
                deadline: Deadline::None,
                ttl: Ttl::None,
                gpus: held.of(key).gpus,
                queue: None,
            },
        }
    }

    fn of_job(job: &TrainJob, held: &HeldByJob, clock: Option<Clock>, now: Timestamp) -> Self {
        let facts = JobFacts::of(job);
        let held = held.of(&facts.key);
        let phase = Phase::of(job, &facts, held.pods > 0);
        Self {
            namespace: facts.key.namespace.to_string(),
            name: facts.key.name.to_string(),
            phase,
            deadline: Deadline::of(&facts, clock, now),
            ttl: Ttl::of(&facts, phase != Phase::Releasing, now),
            gpus: held.gpus,
            queue: phase::queue(job).map(str::to_owned),
        }
    }
}

/// Rows as one JSON document, for programs.
///
/// # Errors
///
/// `out` cannot be written.
pub fn write_json(rows: &[Row], mut out: impl io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, &serde_json::json!({"items": rows}))?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_core::facts::ObjectKey;

    use super::*;

    #[test]
    fn the_ttl_of_a_job_whose_jobset_a_finalizer_keeps_awaits_its_release() {
        let condition = |kind: &str, status: &str, reason: &str| {
            let at = "1970-01-01T00:10:00Z";
            json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": at})
        };
        let blocked = |status: &str| condition("Waiting", status, "JobSetTerminating");
        for (reason, waiting, expected) in [
            ("DeadlineExceeded", blocked("True"), "release"),
            ("DeadlineExceeded", blocked("False"), "due"),
            ("FailedJobs", blocked("True"), "due"),
        ] {
            let job = json!({
                "metadata": {"namespace": "team", "name": "llm"},
                "spec": {"runtimeRef": {"name": "r"}, "ttlSecondsAfterFinished": 60},
                "status": {"conditions": [condition("Failed", "True", reason), waiting]},
            });
            let job = Listed::Job(Box::new(serde_json::from_value(job).unwrap()));
            let row = Row::of(&job, &HeldByJob::default(), None, Timestamp(3_600));
            assert_eq!(row.ttl.to_string(), expected, "{row:?}");
        }
    }

    #[test]
    fn programs_read_what_people_see() {
        let job = json!({
            "metadata": {
                "namespace": "team", "name": "llm", "creationTimestamp": "1970-01-01T00:00:00Z",
                "labels": {"kueue.x-k8s.io/queue-name": "gpu"},
            },
            "spec": {"runtimeRef": {"name": "r"}, "activeDeadlineSeconds": 3_600, "ttlSecondsAfterFinished": 60},
        });
        let job = Listed::Job(Box::new(serde_json::from_value(job).unwrap()));
        let unreadable = Listed::Unreadable(ObjectKey::new("team", "old"));
        let rows = [job, unreadable]
            .map(|listed| Row::of(&listed, &HeldByJob::default(), None, Timestamp(600)));
        let mut written = Vec::new();
        write_json(&rows, &mut written).unwrap();
        let expected = json!({"items": [
            {
                "namespace": "team", "name": "llm", "phase": "Pending", "gpus": 0, "queue": "gpu",
                "deadline": {"state": "Running", "due": "1970-01-01T01:00:00Z", "leftSeconds": 3_000, "exact": true},
                "ttl": {"state": "AfterEnd", "seconds": 60},
            },
            {
                "namespace": "team", "name": "old", "phase": "Unreadable", "gpus": 0,
                "deadline": {"state": "None"}, "ttl": {"state": "None"},
            },
        ]});
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), expected);
    }
}
