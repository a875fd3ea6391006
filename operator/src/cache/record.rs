//! What is remembered of a TrainJob.

use std::sync::Arc;

use trainjob_api::TrainJob;
use trainjob_core::{
    build::{RuntimeKey, runtime_key},
    facts::JobFacts,
};

/// What is remembered of a TrainJob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// Its facts.
    pub facts: JobFacts,
    /// The runtime it names, while it is unfinished.
    pub runtime: Option<RuntimeKey>,
}

impl JobRecord {
    /// The record of a stored TrainJob and, while something may be made from it, its manifest without managed fields: as JSON,
    /// which takes a fraction of the room.
    #[must_use]
    pub fn of(mut job: TrainJob) -> (Self, Option<Arc<str>>) {
        let facts = JobFacts::of(&job);
        job.metadata.managed_fields = None;
        let unfinished = Some(&job).filter(|_| facts.finished.is_none());
        let runtime = unfinished.and_then(|job| runtime_key(job).ok());
        let ours = unfinished.filter(|_| !facts.managed_elsewhere);
        // What was read from JSON can be written as JSON.
        let manifest = ours.and_then(|job| serde_json::to_string(job).ok());
        (Self { facts, runtime }, manifest.map(Arc::from))
    }
}

/// The object that was [kept as JSON](JobRecord::of).
pub(super) fn read(manifest: &str) -> Option<TrainJob> {
    // It was written from an object of this type.
    serde_json::from_str(manifest).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(managed_by: Option<&str>, conditions: &serde_json::Value) -> TrainJob {
        serde_json::from_value(json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {
                "namespace": "ns", "name": "job", "uid": "U", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"},
                "managedFields": [{"manager": "kubectl"}],
            },
            "spec": {
                "runtimeRef": {"name": "torch", "kind": "TrainingRuntime"}, "suspend": true,
                "trainer": {"numNodes": 2, "env": [{"name": "A", "value": "1"}]},
                "managedBy": managed_by,
            },
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn unfinished_job_is_kept_as_it_is_but_for_managed_fields() {
        let stored = job(None, &json!([]));
        let (record, manifest) = JobRecord::of(stored.clone());
        let mut expected = stored;
        expected.metadata.managed_fields = None;
        assert_eq!(manifest.as_deref().and_then(read), Some(expected));
        let runtime = RuntimeKey::Namespaced { namespace: "ns".into(), name: "torch".into() };
        assert_eq!(record.runtime, Some(runtime));
    }

    #[test]
    fn of_a_job_that_nothing_is_made_from_the_facts_are_kept_alone() {
        let end = json!([{"type": "Complete", "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let (record, manifest) = JobRecord::of(job(None, &end));
        assert_eq!((manifest, record.runtime), (None, None), "finished");
        let (_, manifest) = JobRecord::of(job(Some("example.com/other"), &json!([])));
        assert_eq!(manifest, None, "somebody else's");
    }
}
