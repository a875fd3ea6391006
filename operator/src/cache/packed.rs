//! What is remembered of a job and of its JobSet, packed.
//!
//! A hundred thousand jobs are kept for hours, and each is looked at a few times. So some fifty bytes are kept of
//! one, and facts are made of them whenever somebody looks: in less than a microsecond, which is nothing beside the request that
//! made somebody look.

mod bytes;
mod job;
mod job_set;

use serde::{Deserialize, Serialize};
use trainjob_api::{constants::NODE, v1alpha1::train_job::JobStatus};
use trainjob_core::facts::{JobSetFacts, ObjectKey, Standing, uuid_of};
use trainjob_engine::versions::{Versioned, parse};
use uuid::Uuid;

use self::bytes::Bytes;
use super::{named_runtimes::NamedRuntimes, record::JobRecord};

/// What is remembered of a TrainJob, but for its key.
#[derive(Debug)]
pub(super) struct PackedJob(Box<Bytes>);

impl PackedJob {
    /// Packs what is remembered of a job. `runtime` is the number of the one that it names.
    pub(super) fn of(record: &JobRecord, runtime: Option<usize>) -> Self {
        Self(Box::new(Bytes::pack(&job::Form::of(&record.facts, runtime))))
    }

    pub(super) fn record(&self, key: &ObjectKey, runtimes: &NamedRuntimes) -> JobRecord {
        self.0.unpack::<job::Form>().record(key, runtimes)
    }

    /// The UID of the job: in a fraction of the time, because only the beginning is read.
    pub(super) fn uid(&self) -> String {
        self.0.beginning::<job::Beginning>().uid.text().unwrap_or_default()
    }

    /// The number of the runtime that the job names.
    pub(super) fn runtime(&self) -> Option<usize> {
        self.0.beginning::<job::Beginning>().runtime
    }

    /// How the job stands, as quickly.
    pub(super) fn standing(&self) -> Standing {
        self.0.beginning::<job::Beginning>().standing()
    }
}

/// What is remembered of a JobSet.
#[derive(Debug)]
pub(super) struct PackedJobSet(Box<Bytes>);

impl PackedJobSet {
    pub(super) fn of(facts: &JobSetFacts) -> Self {
        Self(Box::new(Bytes::pack(&job_set::Form::of(facts))))
    }

    pub(super) fn facts(&self) -> JobSetFacts {
        self.0.unpack::<job_set::Form>().facts()
    }
}

impl Versioned for PackedJob {
    fn version(&self) -> u64 {
        version(&self.0)
    }
}

impl Versioned for PackedJobSet {
    fn version(&self) -> u64 {
        version(&self.0)
    }
}

/// The version, with which every form begins.
fn version(bytes: &Bytes) -> u64 {
    match bytes.beginning() {
        Version::Number(number) => number,
        Version::Other(version) => parse(&version),
    }
}

/// A UID: sixteen bytes, if it is what the API server makes; or none.
#[derive(Debug, Serialize, Deserialize)]
enum Uid {
    None,
    Uuid([u8; 16]),
    Other(String),
}

impl Uid {
    fn of(uid: &str) -> Self {
        uuid_of(uid)
            .map_or_else(|| Self::Other(uid.to_owned()), |uuid| Self::Uuid(uuid.into_bytes()))
    }

    fn text(self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Uuid(bytes) => Some(Uuid::from_bytes(bytes).to_string()),
            Self::Other(uid) => Some(uid),
        }
    }
}

/// A resource version: a few bytes, if it is a number (KEP-5504).
#[derive(Debug, Serialize, Deserialize)]
enum Version {
    Number(u64),
    Other(String),
}

impl Version {
    fn of(version: &str) -> Self {
        let number = version.parse().ok().filter(|number: &u64| number.to_string() == version);
        number.map_or_else(|| Self::Other(version.to_owned()), Self::Number)
    }

    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Other(version) => version,
        }
    }
}

/// Counts of one replicated job. The type of the API leaves nothing out either, but it may once.
#[derive(Debug, Serialize, Deserialize)]
struct Counts {
    name: Name,
    /// Ready, succeeded, failed, active, suspended.
    jobs: [i32; 5],
}

/// The name of a replicated job, which is one for most jobs.
#[derive(Debug, Serialize, Deserialize)]
enum Name {
    Node,
    Other(String),
}

impl Name {
    fn of(name: &str) -> Self {
        if name == NODE { Self::Node } else { Self::Other(name.to_owned()) }
    }

    fn text(self) -> String {
        match self {
            Self::Node => NODE.to_owned(),
            Self::Other(name) => name,
        }
    }
}

impl Counts {
    fn all(statuses: &[JobStatus]) -> Vec<Self> {
        let one = |status: &JobStatus| {
            let JobStatus { name, ready, succeeded, failed, active, suspended } = status;
            Self { name: Name::of(name), jobs: [*ready, *succeeded, *failed, *active, *suspended] }
        };
        statuses.iter().map(one).collect()
    }

    fn statuses(all: Vec<Self>) -> Vec<JobStatus> {
        let one = |Self { name, jobs: [ready, succeeded, failed, active, suspended] }| JobStatus {
            name: name.text(),
            ready,
            succeeded,
            failed,
            active,
            suspended,
        };
        all.into_iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finished_job_and_job_set_are_short() {
        let uid = "6f9619ff-8b86-d011-b42d-00cf4fc964ff";
        let end = json!({"type": "Complete", "status": "True", "reason": "AllJobsCompleted",
            "message": "jobset completed successfully", "lastTransitionTime": "2026-01-01T01:00:00Z"});
        let counts = json!([{"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0,
            "suspended": 0}]);
        let metadata = json!({"namespace": "team", "name": "job", "uid": uid, "resourceVersion": "123456789",
            "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1});
        let job = json!({
            "metadata": metadata,
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "ttlSecondsAfterFinished": 86_400,
                "activeDeadlineSeconds": 86_400},
            "status": {"conditions": [end], "jobsStatus": counts},
        });
        let (job, _) = JobRecord::of(serde_json::from_value(job).unwrap());
        let mut job_set = json!({"metadata": metadata, "spec": {"suspend": true},
            "status": {"replicatedJobsStatus": counts}});
        job_set["metadata"]["ownerReferences"] = json!([{"apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob", "name": "job", "uid": uid, "controller": true}]);
        let job_set = JobSetFacts::of(&serde_json::from_value(job_set).unwrap());
        let (job, job_set) = (PackedJob::of(&job, None), PackedJobSet::of(&job_set));
        assert!(matches!([*job.0, *job_set.0], [Bytes::Short(_), Bytes::Short(_)]));
    }
}
