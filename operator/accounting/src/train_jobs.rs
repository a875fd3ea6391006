//! What is known of TrainJobs: what their records say of them, and what decides why Pods were stopped.

use std::collections::{BTreeMap, HashMap};

use trainjob_accounting_core::job::{Finish, FinishedHow, Job};
use trainjob_api::{
    TrainJob,
    conditions::{self, COMPLETE, FAILED, SUSPENDED},
    lifecycle::v1alpha1::record::{RecordedJob, RecordedRuntime, TrainJobRecordSpec},
    time::Timestamp,
};
use trainjob_core::facts::{JobFacts, ObjectKey, Outcome};
use trainjob_engine::versions;

use crate::key::JobKey;

/// The label by which Kueue knows the queue of a job.
const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";

/// A TrainJob, as far as it matters.
#[derive(Debug, Clone)]
pub struct Known {
    uid: String,
    version: u64,
    job: Job,
    created_at: Timestamp,
    runtime: RecordedRuntime,
    queue: Option<String>,
    copied: BTreeMap<String, String>,
}

/// All TrainJobs.
#[derive(Debug, Default)]
pub struct TrainJobs {
    copy_labels: Vec<String>,
    known: HashMap<ObjectKey, Known>,
}

impl TrainJobs {
    /// None yet. Records get these labels of theirs.
    #[must_use]
    pub fn new(copy_labels: Vec<String>) -> Self {
        Self { copy_labels, known: HashMap::new() }
    }

    /// A version of one was seen; true if it is news.
    pub fn saw(&mut self, job: &TrainJob) -> bool {
        let key = ObjectKey::of(&job.metadata);
        let version = job.metadata.resource_version.as_deref().map_or(0, versions::parse);
        if self.known.get(&key).is_some_and(|known| known.version >= version) {
            return false;
        }
        let known = self.read(job, version);
        self.known.insert(key, known);
        true
    }

    /// One is gone.
    pub fn gone(&mut self, key: &ObjectKey) {
        self.known.remove(key);
    }

    /// All but these are gone.
    pub fn keep_only(&mut self, listed: &[ObjectKey]) {
        let listed: HashSet<_> = listed.iter().collect();
        self.known.retain(|key, _| listed.contains(key));
    }

    /// How the TrainJob of this UID is.
    #[must_use]
    pub fn job(&self, key: &JobKey) -> Job {
        self.get(key).map_or(Job::Gone, |known| known.job.clone())
    }

    fn get(&self, key: &JobKey) -> Option<&Known> {
        let name = ObjectKey { namespace: key.namespace.clone(), name: key.name.clone() };
        self.known.get(&name).filter(|known| known.uid == *key.uid)
    }

    /// What a new record of it says, and its labels beside those of the mark. Of a TrainJob that is gone, only what its
    /// Pods say is known (AG12).
    #[must_use]
    pub fn record(&self, key: &JobKey) -> (TrainJobRecordSpec, BTreeMap<String, String>) {
        let known = self.get(key);
        let spec = TrainJobRecordSpec {
            train_job: RecordedJob {
                name: key.name.to_string(),
                uid: key.uid.to_string(),
                created_at: known.map(|known| known.created_at.into()),
            },
            runtime_ref: known.map(|known| known.runtime.clone()),
            queue: known.and_then(|known| known.queue.clone()),
        };
        let mut labels = known.map(|known| known.copied.clone()).unwrap_or_default();
        labels.extend(spec.queue.iter().map(|queue| (QUEUE_LABEL.to_owned(), queue.clone())));
        (spec, labels)
    }

    fn read(&self, job: &TrainJob, version: u64) -> Known {
        let facts = JobFacts::of(job);
        let labels = job.metadata.labels.as_ref();
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).cloned();
        let copied = self.copy_labels.iter().filter_map(|key| Some((key.clone(), label(key)?)));
        let runtime = &job.spec.runtime_ref;
        Known {
            uid: facts.uid.clone(),
            version,
            job: state(job, &facts),
            created_at: facts.created_at,
            runtime: RecordedRuntime { kind: runtime.kind.clone(), name: runtime.name.clone() },
            queue: label(QUEUE_LABEL),
            copied: copied.collect(),
        }
    }
}

fn state(job: &TrainJob, facts: &JobFacts) -> Job {
    let all = job.status.as_ref().and_then(|status| status.conditions.as_deref());
    let all = all.unwrap_or_default();
    let suspended = conditions::find(all, SUSPENDED);
    let suspended_changed_at = suspended.map(|it| Timestamp::from(&it.last_transition_time));
    let Some(finished) = facts.finished else { return Job::Running { suspended_changed_at } };
    let (kind, how) = match finished.outcome {
        Outcome::Complete => (COMPLETE, FinishedHow::Complete),
        Outcome::Failed => (FAILED, FinishedHow::Failed),
        Outcome::DeadlineExceeded => (FAILED, FinishedHow::DeadlineExceeded),
    };
    let condition = conditions::find_true(all, kind);
    Job::Finished(Finish {
        how,
        at: finished.at,
        reason: condition.map(|it| it.reason.clone()).unwrap_or_default(),
        message: condition.map(|it| it.message.clone()).unwrap_or_default(),
        suspended_changed_at,
    })
}
