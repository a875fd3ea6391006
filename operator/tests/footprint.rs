//! How much memory a job takes that waits, with its JobSet.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::fs;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use trainjob_api::TrainJob;
use trainjob_core::facts::{JobSetFacts, ObjectKey};
use trainjob_engine::versions::Source;
use trainjob_operator::cache::Cache;

const JOBS: usize = 20_000;
const NAMESPACES: usize = 200;

/// Bytes that a suspended job with its JobSet may take, of which manifests take about 840: as many as find room.
const WITH_JOB_SET: usize = 1_250;
/// Bytes that a finished job may take.
const FINISHED: usize = 330;

fn uid(kind: u32, number: usize) -> String {
    format!("{kind:08x}-8b86-4011-b42d-{number:012x}")
}

fn job(number: usize, finished: bool) -> TrainJob {
    let end = json!({"type": "Complete", "status": "True", "reason": "AllJobsCompleted",
        "message": "jobset completed successfully", "lastTransitionTime": "2026-01-01T01:00:00Z"});
    let suspended = json!({"type": "Suspended", "status": "True", "reason": "Suspended",
        "message": "TrainJob is suspended", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let counts = json!([{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0,
        "suspended": 1}]);
    serde_json::from_value(json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {
            "namespace": format!("team-{:03}", number % NAMESPACES), "name": format!("train-{number}"),
            "uid": uid(1, number), "resourceVersion": (1_000_000 + number).to_string(),
            "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"kueue.x-k8s.io/queue-name": "training"},
        },
        "spec": {
            "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime",
                "name": "torch-distributed"},
            "suspend": !finished, "ttlSecondsAfterFinished": 3_600, "activeDeadlineSeconds": 86_400,
            "trainer": {
                "image": "registry.example.com/team/training:2026-01-01", "numNodes": 4,
                "command": ["torchrun", "train.py", "--epochs", "10", "--data", "/data/set"],
                "env": [{"name": "WANDB_MODE", "value": "offline"}],
                "resourcesPerNode": {"requests": {"cpu": "8", "memory": "64Gi"},
                    "limits": {"nvidia.com/gpu": "8"}},
            },
        },
        "status": {
            "conditions": [if finished { end } else { suspended }],
            "jobsStatus": counts,
        },
    }))
    .unwrap()
}

fn job_set(number: usize) -> JobSetFacts {
    let owner = json!([{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "name": format!("train-{number}"), "uid": uid(1, number), "controller": true}]);
    let counts = json!([{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0,
        "suspended": 1}]);
    JobSetFacts::of(
        &serde_json::from_value(json!({
            "metadata": {
                "uid": uid(2, number), "resourceVersion": (2_000_000 + number).to_string(),
                "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": owner,
            },
            "spec": {"suspend": true},
            "status": {"replicatedJobsStatus": counts},
        }))
        .unwrap(),
    )
}

/// Bytes that this process has to itself.
fn memory() -> usize {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1_024
}

/// Bytes for each of the jobs that `put` puts.
fn each(put: impl Fn(usize)) -> usize {
    let before = memory();
    (0..JOBS).for_each(put);
    memory().saturating_sub(before) / JOBS
}

#[test]
fn waiting_job_and_finished_job_take_what_their_facts_take() {
    let cache = Cache::new(16 << 20);
    let finished = each(|number| {
        cache.put_job(job(number, true), Source::Watch);
    });
    let waiting = each(|number| {
        let number = JOBS + number;
        let job = job(number, false);
        let key = ObjectKey::of(&ObjectMeta {
            namespace: job.metadata.namespace.clone(),
            name: job.metadata.name.clone(),
            ..ObjectMeta::default()
        });
        cache.put_job_set(&key, &job_set(number), Source::Watch);
        cache.put_job(job, Source::Watch);
    });
    let sizes = cache.sizes();
    assert_eq!(sizes[..2], [2 * JOBS, JOBS]);
    assert!(finished <= FINISHED, "a finished job takes {finished} bytes");
    assert!(waiting <= WITH_JOB_SET, "a suspended job with its JobSet takes {waiting} bytes");
    println!("finished: {finished} bytes, suspended with its JobSet: {waiting} bytes");
}
