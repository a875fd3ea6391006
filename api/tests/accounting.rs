//! Records as the accounting writes them and as the API server shows them (`docs/accounting.md`, 5).

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use serde_json::{Value, json};
use trainjob_api::{
    crd,
    lifecycle::v1alpha1::record::{
        ATTEMPTS, FAILURES, JOB_SETS, MESSAGE, NAMES, RESOURCES, SETTLING, TrainJobRecord,
    },
};

/// The record of the page, with every field.
const RECORD: &str = "
apiVersion: lifecycle.trainjob.dev/v1alpha1
kind: TrainJobRecord
metadata: {name: llm-3f2a9c1e, namespace: team}
spec:
  trainJob: {name: llm, uid: 3f2a9c1e-0b7d-4c55-9a51-7e0d8a5f2b10, createdAt: '2026-11-22T05:00:00Z'}
  runtimeRef: {kind: ClusterTrainingRuntime, name: torch-distributed}
  queue: gpu
status:
  outcome: Complete
  reason: AllJobsCompleted
  message: jobset completed successfully
  startedAt: '2026-11-22T05:00:10Z'
  endedAt: '2026-11-22T06:00:00Z'
  finishedAt: '2026-11-22T06:00:01Z'
  asOf: '2026-11-22T06:00:02Z'
  totals:
    pods: {active: 0, succeeded: 8, failed: 1, deleted: 7}
    restarts: 1
    gpuSeconds: 57600
    gpuHours: '16.00'
    wastedGpuSeconds: 28800
    wastedGpuHours: '8.00'
    seconds: {nvidia.com/gpu: 57600, cpu: 115200000, memory: 943718400}
    wasted: {nvidia.com/gpu: 28800}
    wastedByCause: {OOMKilled: 28800}
  jobSets: [{ordinal: 1, uid: u1, restart: 1}]
  causes: [{jobSet: 1, restart: 0, reason: OOMKilled, at: '2026-11-22T05:30:00Z'}]
  replicatedJobs:
  - name: node
    attempts:
    - {jobSet: 1, restart: 0, containerRestarts: 0, startedAt: '2026-11-22T05:00:10Z', endedAt: '2026-11-22T05:30:00Z',
       pods: {active: 0, succeeded: 0, failed: 1, deleted: 7}, reasons: {OOMKilled: 1, Stopped: 7},
       seconds: {nvidia.com/gpu: 28800}, wasted: {nvidia.com/gpu: 3600}}
    earlier: {attempts: 0, containerRestarts: 0, pods: {active: 0, succeeded: 0, failed: 0, deleted: 0}}
  exitCodes: {'137': 1}
  firstFailures:
  - {pod: llm-node-0-0-abcde, replicatedJob: node, jobSet: 1, restart: 0, node: n7, container: node, exitCode: 137,
     reason: OOMKilled, endedAt: '2026-11-22T05:30:00Z', message: out of memory}
  settling: [u2]
  lost: {Unwatched: 1}
  inexact: [Lost]
  clamped: 0
  conditions:
  - {type: Final, status: 'True', reason: AllCounted, message: '', lastTransitionTime: '2026-11-22T06:00:02Z'}
";

fn record() -> Value {
    serde_saphyr::from_str(RECORD).unwrap()
}

fn version() -> Value {
    let crd = serde_json::to_value(crd::accounting()).unwrap();
    crd["spec"]["versions"][0].clone()
}

#[test]
fn a_record_comes_back_as_it_was() {
    let read: TrainJobRecord = serde_json::from_value(record()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), record());
}

/// A later version may have written it, and what it counted must not be lost.
#[test]
fn the_status_is_read_leniently_and_the_spec_strictly() {
    let read = |record: Value| serde_json::from_value::<TrainJobRecord>(record);
    let mut later = record();
    later["status"]["newField"] = json!(1);
    later["status"]["outcome"] = json!("Paused");
    assert!(read(later).is_ok());
    let mut empty = record();
    empty["status"] = json!({});
    assert!(read(empty).is_ok());
    for path in ["/spec", "/spec/trainJob", "/spec/runtimeRef"] {
        let mut strange = record();
        strange.pointer_mut(path).unwrap()["newField"] = json!(1);
        assert!(read(strange).is_err(), "{path}");
    }
}

#[test]
fn people_see_columns_a_short_name_and_fields_to_select() {
    let crd = serde_json::to_value(crd::accounting()).unwrap();
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["tjr"]));
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let version = version();
    assert_eq!(version["subresources"], json!({"status": {}}));
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let names: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
    let expected = ["Job", "Outcome", "GPU-Hours", "Wasted", "Failed", "Restarts", "Final", "Age"];
    assert_eq!(names, expected);
    let selectable = [".spec.trainJob.uid", ".spec.queue", ".status.outcome"];
    let selectable = selectable.map(|path| json!({"jsonPath": path}));
    assert_eq!(version["selectableFields"], json!(selectable));
}

#[test]
fn the_schema_bounds_what_the_types_bound() {
    let version = version();
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(schema["required"], json!(["spec"]));
    let spec = &schema["properties"]["spec"]["x-kubernetes-validations"];
    assert_eq!(spec[0]["rule"], "self == oldSelf");
    let at = |path: &str| {
        let status = &schema["properties"]["status"];
        let found = status.pointer(path).and_then(Value::as_u64);
        usize::try_from(found.unwrap_or_default()).unwrap()
    };
    let job = "/properties/replicatedJobs/items/properties";
    let attempt = format!("{job}/attempts/items/properties");
    for (path, bound) in [
        ("/properties/settling/maxItems".to_owned(), SETTLING),
        ("/properties/jobSets/maxItems".to_owned(), JOB_SETS),
        ("/properties/causes/maxItems".to_owned(), ATTEMPTS),
        (format!("{job}/attempts/maxItems"), ATTEMPTS),
        ("/properties/replicatedJobs/maxItems".to_owned(), NAMES + 1),
        ("/properties/exitCodes/maxProperties".to_owned(), NAMES + 1),
        ("/properties/firstFailures/maxItems".to_owned(), FAILURES),
        ("/properties/firstFailures/items/properties/message/maxLength".to_owned(), MESSAGE),
        (format!("{attempt}/seconds/maxProperties"), RESOURCES),
        (format!("{job}/earlier/properties/wasted/maxProperties"), RESOURCES),
    ] {
        assert_eq!(at(&path), bound, "{path}");
    }
}
