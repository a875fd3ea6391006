//! What is remembered of a job and of its JobSet, packed.
//!
//! A hundred thousand jobs are kept for hours, and each is looked at a few times. So some sixty bytes are kept of
//! one, and facts are made of them whenever somebody looks: in less than a microsecond, which is nothing beside the request that
//! made somebody look.

mod job;
mod job_set;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use trainjob_api::v1alpha1::train_job::JobStatus;
use trainjob_core::facts::{JobSetFacts, ObjectKey, Standing, uuid_of};
use trainjob_engine::versions::{Versioned, parse};
use uuid::Uuid;

use super::record::JobRecord;

/// What is remembered of a TrainJob, but for its key.
#[derive(Debug)]
pub(super) struct PackedJob(Box<[u8]>);

impl PackedJob {
    pub(super) fn of(record: &JobRecord) -> Self {
        Self(pack(&job::Form::of(record)))
    }

    pub(super) fn record(&self, key: &ObjectKey) -> JobRecord {
        unpack::<job::Form>(&self.0).record(key)
    }

    /// How the job stands: in a fraction of the time, because only the beginning is read.
    pub(super) fn standing(&self) -> Standing {
        beginning::<job::Beginning>(&self.0).standing()
    }
}

/// What is remembered of a JobSet.
#[derive(Debug)]
pub(super) struct PackedJobSet(Box<[u8]>);

impl PackedJobSet {
    pub(super) fn of(facts: &JobSetFacts) -> Self {
        Self(pack(&job_set::Form::of(facts)))
    }

    pub(super) fn facts(&self) -> JobSetFacts {
        unpack::<job_set::Form>(&self.0).facts()
    }
}

impl Versioned for PackedJob {
    fn version(&self) -> u64 {
        first(&self.0)
    }
}

impl Versioned for PackedJobSet {
    fn version(&self) -> u64 {
        first(&self.0)
    }
}

/// The version, with which every form begins.
fn first(bytes: &[u8]) -> u64 {
    match beginning(bytes) {
        Version::Number(number) => number,
        Version::Other(version) => parse(&version),
    }
}

#[expect(clippy::expect_used, reason = "a form has neither maps nor sequences of unknown length")]
fn pack(form: &impl Serialize) -> Box<[u8]> {
    postcard::to_allocvec(form).expect("a form can be written").into_boxed_slice()
}

#[expect(clippy::expect_used, reason = "who calls this has packed such a form")]
fn unpack<F: DeserializeOwned>(bytes: &[u8]) -> F {
    postcard::from_bytes(bytes).expect("what was written can be read")
}

#[expect(clippy::expect_used, reason = "who calls this has packed a form that begins so")]
fn beginning<B: DeserializeOwned>(bytes: &[u8]) -> B {
    postcard::take_from_bytes(bytes).expect("what was written can be read").0
}

/// A UID: sixteen bytes, if it is what the API server makes.
#[derive(Debug, Serialize, Deserialize)]
enum Uid {
    Uuid([u8; 16]),
    Other(String),
}

impl Uid {
    fn of(uid: &str) -> Self {
        uuid_of(uid)
            .map_or_else(|| Self::Other(uid.to_owned()), |uuid| Self::Uuid(uuid.into_bytes()))
    }

    fn text(self) -> String {
        match self {
            Self::Uuid(bytes) => Uuid::from_bytes(bytes).to_string(),
            Self::Other(uid) => uid,
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
    name: String,
    /// Ready, succeeded, failed, active, suspended.
    jobs: [i32; 5],
}

impl Counts {
    fn all(statuses: &[JobStatus]) -> Vec<Self> {
        let one = |status: &JobStatus| {
            let JobStatus { name, ready, succeeded, failed, active, suspended } = status;
            Self { name: name.clone(), jobs: [*ready, *succeeded, *failed, *active, *suspended] }
        };
        statuses.iter().map(one).collect()
    }

    fn statuses(all: Vec<Self>) -> Vec<JobStatus> {
        let one = |Self { name, jobs: [ready, succeeded, failed, active, suspended] }| JobStatus {
            name,
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
    fn finished_job_and_job_set_take_some_sixty_bytes_each() {
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
        let sizes = [PackedJob::of(&job).0.len(), PackedJobSet::of(&job_set).0.len()];
        assert!(sizes.iter().all(|size| *size <= 70), "{sizes:?}");
    }
}
