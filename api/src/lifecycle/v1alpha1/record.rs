//! The record of a TrainJob: what its Pods used and how they ended, counted once each (`docs/accounting.md`).
//!
//! The accounting program writes it and reads it back, leniently: the status is its only memory. Fields that may have
//! more values one day are strings; [`record_words`](super::record_words) has those of this version. Numbers are 64 bits
//! wide on the API server, signed, and stop at the largest.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many UIDs of counted Pods a record has at once that still have to be released.
pub const SETTLING: usize = 500;
/// How many of the last attempts have entries of their own.
pub const ATTEMPTS: usize = 6;
/// How many of the last JobSets have an entry.
pub const JOB_SETS: usize = 4;
/// How many resources are counted in an attempt.
pub const RESOURCES: usize = 8;
/// How many replicated jobs, and how many exit codes, have entries of their own; the rest is summed in `other`.
pub const NAMES: usize = 16;
/// The entry for the rest.
pub const OTHER: &str = "other";
/// How many failures a record describes.
pub const FAILURES: usize = 10;
/// How many of them are of one attempt.
pub const FAILURES_PER_ATTEMPT: usize = 3;
/// How many characters of a failure's message are kept.
pub const MESSAGE: usize = 256;

/// Seconds of each resource, by its name.
pub type Seconds = BTreeMap<String, u64>;

/// What the record is about. It never changes.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "lifecycle.trainjob.dev",
    version = "v1alpha1",
    kind = "TrainJobRecord",
    plural = "trainjobrecords",
    singular = "trainjobrecord",
    shortname = "tjr",
    namespaced,
    status = "TrainJobRecordStatus",
    derive = "PartialEq",
    selectable = ".spec.trainJob.uid",
    selectable = ".spec.queue",
    selectable = ".status.outcome",
    schema = "disabled",
    doc = "The receipt of one TrainJob, which stays when the TrainJob is gone."
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrainJobRecordSpec {
    /// The TrainJob whose Pods are counted.
    pub train_job: RecordedJob,
    /// The runtime that the TrainJob was made from, if the TrainJob was there when the record was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_ref: Option<RecordedRuntime>,
    /// The Kueue queue that the TrainJob was submitted to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub queue: Option<String>,
}

/// One TrainJob of all that ever had its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedJob {
    /// Name of the TrainJob.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// UID of the TrainJob.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
    /// When the TrainJob was created, if it was there when the record was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
}

/// A runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedRuntime {
    /// Its kind: `TrainingRuntime` or `ClusterTrainingRuntime`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What has been counted so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrainJobRecordStatus {
    /// How the TrainJob is or ended: Running, Complete, Failed, `DeadlineExceeded` or Deleted.
    #[schemars(length(max = 32))]
    pub outcome: String,
    /// The reason of the TrainJob's terminal condition.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// The message of the TrainJob's terminal condition, cut to 256 characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub message: String,
    /// The earliest start of a counted Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The latest end of a counted Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// When the TrainJob finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// When this was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Time>,
    /// Sums over all counted Pods.
    pub totals: Totals,
    /// The last four JobSets of the TrainJob, in the order of their first Pods.
    #[schemars(length(max = 4))]
    pub job_sets: Vec<RecordedJobSet>,
    /// Why each of the last six attempts ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6))]
    pub causes: Vec<AttemptCause>,
    /// The Pods by replicated job, up to 16 of them; the rest is in one with the name other.
    #[schemars(length(max = 17))]
    pub replicated_jobs: Vec<RecordedReplicatedJob>,
    /// How many Pods failed with each exit code, up to 16 codes; the rest is in other.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub exit_codes: BTreeMap<String, u64>,
    /// The earliest failures, three of an attempt at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub first_failures: Vec<PodFailure>,
    /// UIDs of Pods that are counted and may still have the finalizer.
    #[schemars(length(max = 500))]
    pub settling: Vec<String>,
    /// Pods that were not counted, by reason. A lower bound.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
    /// Why the record is not exact, or was not at some time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub inexact: Vec<String>,
    /// How often an instant was moved because the clocks of two machines disagreed.
    pub clamped: u64,
    /// Final: nothing will be added. Exact: every Pod is counted, and with its true times.
    #[schemars(length(max = 8))]
    pub conditions: Vec<Condition>,
}

/// Sums over the counted Pods of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Totals {
    /// How many Pods there are and how they ended.
    pub pods: PodCounts,
    /// How many attempts there were after the first.
    pub restarts: u64,
    /// Seconds of all GPUs.
    pub gpu_seconds: u64,
    /// The same in hours, with two digits, cut off.
    #[schemars(length(max = 32))]
    pub gpu_hours: String,
    /// Seconds of GPUs whose work was lost.
    pub wasted_gpu_seconds: u64,
    /// The same in hours, with two digits, cut off.
    #[schemars(length(max = 32))]
    pub wasted_gpu_hours: String,
    /// Seconds of each resource. A second of cpu is one of a millicore, a second of memory one of a MiB.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seconds: Seconds,
    /// Seconds of each resource whose work was lost.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wasted: Seconds,
    /// Seconds of GPUs whose work was lost, by what ended the attempt.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wasted_by_cause: Seconds,
}

/// How many Pods ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCounts {
    /// Those that are known and not counted yet.
    pub active: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those that failed by themselves or by their node.
    pub failed: u64,
    /// Those that somebody stopped.
    pub deleted: u64,
}

/// A JobSet of the TrainJob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedJobSet {
    /// Its number: 1 is the first.
    pub ordinal: u64,
    /// Its UID.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
    /// The latest restart of which a Pod is known; 0 is the first attempt.
    pub restart: u64,
}

/// Why an attempt ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AttemptCause {
    /// The number of the JobSet.
    pub job_set: u64,
    /// The restart of that JobSet; 0 is the first attempt.
    pub restart: u64,
    /// The reason of the Pod that failed first; without one, Suspended or Stopped.
    #[schemars(length(max = 32))]
    pub reason: String,
    /// When that Pod ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// The Pods of one replicated job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedReplicatedJob {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its Pods in the last six attempts of the TrainJob.
    #[schemars(length(max = 6))]
    pub attempts: Vec<Attempt>,
    /// Its Pods in all earlier attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierAttempts>,
}

/// The Pods of a replicated job in one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Attempt {
    /// The number of the JobSet.
    pub job_set: u64,
    /// The restart of that JobSet; 0 is the first attempt.
    pub restart: u64,
    /// What its Pods add up to.
    #[serde(flatten)]
    pub sums: PodSums,
}

/// What Pods add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSums {
    /// How often their containers were restarted in place.
    pub container_restarts: u64,
    /// The earliest start of a counted Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The latest end of a counted Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// How many Pods there are and how they ended.
    pub pods: PodCounts,
    /// How many Pods ended for each reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
    /// Seconds of each resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seconds: Seconds,
    /// Seconds of each resource in Pods that failed or were suspended.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wasted: Seconds,
}

/// The Pods of a replicated job in the attempts before the last six.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EarlierAttempts {
    /// How many attempts were moved here.
    pub attempts: u64,
    /// What their Pods add up to.
    #[serde(flatten)]
    pub sums: PodSums,
    /// Seconds of GPUs by what ended the attempt: all of them were lost.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wasted_by_cause: Seconds,
}

/// A Pod that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodFailure {
    /// Name of the Pod.
    #[schemars(length(max = 253))]
    pub pod: String,
    /// The replicated job that it was part of.
    #[schemars(length(max = 253))]
    pub replicated_job: String,
    /// The number of the JobSet.
    pub job_set: u64,
    /// The restart of that JobSet; 0 is the first attempt.
    pub restart: u64,
    /// The node that it ran on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node: Option<String>,
    /// The container that failed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub container: Option<String>,
    /// Its exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why the Pod failed.
    #[schemars(length(max = 32))]
    pub reason: String,
    /// When the Pod ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// The message of the container or of the Pod, cut to 256 characters.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub message: String,
}
