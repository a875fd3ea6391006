//! What is known of TrainJobs: what their records say of them, and what decides why Pods were stopped.

use std::collections::{BTreeMap, HashMap, HashSet};

use trainjob_accounting_core::job::{Finish, FinishedHow, Job, Suspension};
use trainjob_api::{
    TrainJob,
    conditions::{self, COMPLETE, FAILED, SUSPENDED},
    constants::KUEUE_QUEUE_LABEL,
    lifecycle::v1alpha1::record::{RecordedJob, RecordedRuntime, TrainJobRecordSpec},
    time::Timestamp,
};
use trainjob_core::facts::{JobFacts, Namespaces, ObjectKey, Outcome};
use trainjob_engine::versions;

use crate::key::JobKey;

/// The kind of a runtime whose kind is not said.
const CLUSTER_TRAINING_RUNTIME: &str = "ClusterTrainingRuntime";

/// A TrainJob, as far as it matters.
#[derive(Debug, Clone)]
struct Known {
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
    namespaces: Namespaces,
    /// Those that went, by UID: their records have to tell how, and why their last Pods were stopped.
    departed: HashMap<String, Known>,
}

impl TrainJobs {
    /// None yet. Records get these labels of theirs.
    #[must_use]
    pub fn new(copy_labels: Vec<String>) -> Self {
        Self {
            copy_labels,
            known: HashMap::new(),
            namespaces: Namespaces::default(),
            departed: HashMap::new(),
        }
    }

    /// A version of one was seen; true if it is news.
    pub fn saw(&mut self, job: &TrainJob) -> bool {
        let key = ObjectKey::of(&job.metadata);
        let version = job.metadata.resource_version.as_deref().map_or(0, versions::parse);
        if self.known.get(&key).is_some_and(|known| known.version >= version) {
            return false;
        }
        // What was asked for before it went may be answered after.
        let departed = job.metadata.uid.as_ref().and_then(|uid| self.departed.get(uid));
        if departed.is_some_and(|departed| departed.version >= version) {
            return false;
        }
        let known = self.read(job, version);
        let before = self.known.insert(self.namespaces.key(&key), known);
        if let Some(before) = before.filter(|before| Some(&before.uid) != job.metadata.uid.as_ref())
        {
            self.depart(before);
        }
        true
    }

    /// That of this UID is gone. What it was like stays known until it is [forgotten](Self::forget).
    pub fn gone(&mut self, key: &ObjectKey, uid: &str) {
        // Another of that name may have been read before its predecessor's end is told.
        if self.known.get(key).is_some_and(|known| known.uid == uid)
            && let Some(known) = self.known.remove(key)
        {
            self.depart(known);
        }
    }

    fn depart(&mut self, mut known: Known) {
        if let Job::Running { suspension } = known.job {
            known.job = Job::Gone { suspension };
        }
        self.departed.insert(known.uid.clone(), known);
    }

    /// Nothing is left to do about the record of the one of this UID.
    pub fn forget(&mut self, uid: &str) {
        self.departed.remove(uid);
    }

    /// The UIDs of those that went.
    pub fn departed(&self) -> impl Iterator<Item = &str> {
        self.departed.keys().map(String::as_str)
    }

    /// All but these are gone.
    pub fn keep_only(&mut self, listed: &[ObjectKey]) {
        let listed: HashSet<_> = listed.iter().collect();
        let gone: Vec<_> = self.known.extract_if(|key, _| !listed.contains(key)).collect();
        for (_, known) in gone {
            self.depart(known);
        }
    }

    /// How the TrainJob of this UID is.
    #[must_use]
    pub fn job(&self, key: &JobKey) -> Job {
        let unknown = Job::Gone { suspension: Suspension::Never };
        self.get(key).map_or(unknown, |known| known.job.clone())
    }

    /// Whether something is known of the TrainJob.
    #[must_use]
    pub fn has(&self, key: &JobKey) -> bool {
        self.get(key).is_some()
    }

    /// The queue that it was submitted to.
    #[must_use]
    pub fn queue(&self, key: &JobKey) -> Option<&str> {
        self.get(key)?.queue.as_deref()
    }

    fn get(&self, key: &JobKey) -> Option<&Known> {
        let known = self.known.get(&key.object()).filter(|known| known.uid == *key.uid);
        known.or_else(|| self.departed.get(&*key.uid))
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
        labels.extend(spec.queue.iter().map(|queue| (KUEUE_QUEUE_LABEL.to_owned(), queue.clone())));
        (spec, labels)
    }

    fn read(&self, job: &TrainJob, version: u64) -> Known {
        let facts = JobFacts::of(job);
        let labels = job.metadata.labels.as_ref();
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).cloned();
        let copied = self.copy_labels.iter().filter_map(|key| Some((key.clone(), label(key)?)));
        let runtime = &job.spec.runtime_ref;
        let kind = runtime.kind.clone().unwrap_or_else(|| CLUSTER_TRAINING_RUNTIME.to_owned());
        Known {
            uid: facts.uid.clone(),
            version,
            job: state(job, &facts),
            created_at: facts.created_at,
            runtime: RecordedRuntime { kind, name: runtime.name.clone() },
            queue: label(KUEUE_QUEUE_LABEL),
            copied: copied.collect(),
        }
    }
}

fn state(job: &TrainJob, facts: &JobFacts) -> Job {
    let all = job.status.as_ref().and_then(|status| status.conditions.as_deref());
    let all = all.unwrap_or_default();
    let changed = conditions::find(all, SUSPENDED).map_or(Suspension::Never, |it| {
        Suspension::ChangedAt(Timestamp::from(&it.last_transition_time))
    });
    let Some(finished) = facts.finished else {
        let asked =
            job.spec.suspend == Some(true) && conditions::find_true(all, SUSPENDED).is_none();
        return Job::Running { suspension: if asked { Suspension::Asked } else { changed } };
    };
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
        suspension: changed,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::{Value, json};

    use super::*;

    const UNKNOWN: Job = Job::Gone { suspension: Suspension::Never };

    fn job(uid: &str, version: u32, labels: &Value) -> TrainJob {
        let metadata = json!({
            "name": "llm", "namespace": "a", "uid": uid, "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-11-22T06:00:00Z", "labels": labels,
        });
        let spec = json!({"runtimeRef": {"kind": "ClusterTrainingRuntime", "name": "torch"}});
        serde_json::from_value(json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": metadata, "spec": spec,
        }))
        .unwrap()
    }

    fn key(uid: &str) -> JobKey {
        JobKey { namespace: "a".into(), name: "llm".into(), uid: uid.into() }
    }

    #[test]
    fn a_record_says_where_its_job_came_from_and_what_labels_are_copied() {
        let mut jobs = TrainJobs::new(vec!["cost-center".into(), "absent".into()]);
        let labels = json!({KUEUE_QUEUE_LABEL: "gpu", "cost-center": "7", "other": "x"});
        assert!(jobs.saw(&job("u1", 5, &labels)));
        let (spec, labels) = jobs.record(&key("u1"));
        assert_eq!((spec.queue.as_deref(), jobs.queue(&key("u1"))), (Some("gpu"), Some("gpu")));
        assert_eq!(spec.runtime_ref.unwrap().name, "torch");
        assert!(spec.train_job.created_at.is_some());
        let expected = [(KUEUE_QUEUE_LABEL, "gpu"), ("cost-center", "7")];
        assert_eq!(labels, expected.map(|(key, value)| (key.into(), value.into())).into());
    }

    #[test]
    fn ag12_of_a_job_that_is_gone_only_what_its_pods_say_is_recorded() {
        let jobs = TrainJobs::new(Vec::new());
        let (spec, labels) = jobs.record(&key("u1"));
        assert_eq!((&*spec.train_job.name, &*spec.train_job.uid), ("llm", "u1"));
        assert!(spec.runtime_ref.is_none() && spec.queue.is_none() && labels.is_empty());
        assert_eq!(jobs.job(&key("u1")), UNKNOWN);
    }

    #[test]
    fn a_job_is_suspended_from_when_its_spec_asks_for_it() {
        let told = |status| {
            json!({
                "type": SUSPENDED, "status": status, "reason": status, "message": "",
                "lastTransitionTime": "2026-11-22T06:10:00Z",
            })
        };
        let at: Time = serde_json::from_value(json!("2026-11-22T06:10:00Z")).unwrap();
        let changed = Suspension::ChangedAt(Timestamp::from(&at));
        for (case, suspend, condition, expected) in [
            ("it never was", false, None, Suspension::Never),
            ("asked for", true, None, Suspension::Asked),
            ("told of", true, Some("True"), changed),
            ("resumed, not told of", false, Some("True"), changed),
            ("resumed", false, Some("False"), changed),
            ("asked for again", true, Some("False"), Suspension::Asked),
        ] {
            let mut job = job("u1", 5, &json!({}));
            job.spec.suspend = Some(suspend);
            let conditions: Vec<_> = condition.map(told).into_iter().collect();
            job.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
            let mut jobs = TrainJobs::new(Vec::new());
            jobs.saw(&job);
            assert_eq!(jobs.job(&key("u1")), Job::Running { suspension: expected }, "{case}");
        }
    }

    #[test]
    fn what_a_job_said_of_being_suspended_stays_known_when_it_goes() {
        let mut suspended = job("u1", 5, &json!({}));
        let condition = json!({
            "type": SUSPENDED, "status": "False", "reason": "Resumed", "message": "",
            "lastTransitionTime": "2026-11-22T06:10:00Z",
        });
        suspended.status = serde_json::from_value(json!({"conditions": [condition]})).unwrap();
        let mut jobs = TrainJobs::new(Vec::new());
        jobs.saw(&suspended);
        let Job::Running { suspension } = jobs.job(&key("u1")) else { panic!("it runs") };
        assert_ne!(suspension, Suspension::Never);
        jobs.gone(&key("u1").object(), "u1");
        assert_eq!(jobs.job(&key("u1")), Job::Gone { suspension });
    }

    #[test]
    fn a_name_that_is_used_again_is_another_job() {
        let mut jobs = TrainJobs::new(Vec::new());
        jobs.saw(&job("u1", 5, &json!({})));
        assert!(!jobs.saw(&job("u1", 4, &json!({}))), "an older version is no news");
        jobs.saw(&job("u2", 9, &json!({})));
        assert_eq!(jobs.job(&key("u1")), UNKNOWN);
        jobs.gone(&key("u1").object(), "u1");
        assert!(jobs.has(&key("u2")), "the end of its predecessor is told late");
        jobs.gone(&key("u2").object(), "u2");
        assert_eq!(jobs.departed().collect::<BTreeSet<_>>(), ["u1", "u2"].into());
        jobs.forget("u2");
        assert!(!jobs.has(&key("u2")));
    }

    #[test]
    fn an_answer_that_comes_late_does_not_bring_a_job_back() {
        let mut jobs = TrainJobs::new(Vec::new());
        jobs.saw(&job("u1", 8, &json!({})));
        jobs.gone(&key("u1").object(), "u1");
        assert!(!jobs.saw(&job("u1", 7, &json!({}))));
        assert_eq!(jobs.job(&key("u1")), UNKNOWN, "it is gone");
        assert!(jobs.saw(&job("u2", 9, &json!({}))), "another of its name");
    }

    #[test]
    fn how_a_job_finished_stays_known_when_it_goes_until_its_record_is_done() {
        let mut jobs = TrainJobs::new(Vec::new());
        let mut finished = job("u1", 5, &json!({KUEUE_QUEUE_LABEL: "gpu"}));
        let condition = json!({
            "type": "Complete", "status": "True", "reason": "JobsCompleted", "message": "",
            "lastTransitionTime": "2026-11-22T06:10:00Z",
        });
        finished.status = serde_json::from_value(json!({"conditions": [condition]})).unwrap();
        jobs.saw(&finished);
        jobs.gone(&key("u1").object(), "u1");
        assert!(matches!(jobs.job(&key("u1")), Job::Finished(_)));
        assert_eq!(jobs.queue(&key("u1")), Some("gpu"));
        assert_eq!(jobs.departed().collect::<Vec<_>>(), ["u1"]);
        jobs.forget("u1");
        assert_eq!(jobs.job(&key("u1")), UNKNOWN);

        jobs.saw(&job("u2", 9, &json!({})));
        jobs.keep_only(&[]);
        assert_eq!(jobs.job(&key("u2")), UNKNOWN, "it had not finished");
    }
}
