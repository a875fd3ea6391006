//! The parts of JobSet `v1alpha2` (as of JobSet 0.12) that are embedded in runtimes, written and read.
//!
//! [`JobSet`] is the whole object, for creating one; [`JobSetView`] is what a watch needs of it, a
//! small fraction of the bytes.

use k8s_openapi::{
    api::{
        batch::v1::JobTemplateSpec,
        core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::{CustomResource, Resource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use validator::Validate;

/// `apiVersion` of a JobSet.
pub const API_VERSION: &str = "jobset.x-k8s.io/v1alpha2";
/// Kind of a JobSet.
pub const KIND: &str = "JobSet";

/// The JobSet a runtime describes: metadata and spec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSetTemplateSpec {
    /// Labels and annotations for the JobSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// The JobSet's spec.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<JobSetSpec>,
}

/// What a watch needs of a JobSet: identity, owner, suspension and status.
#[derive(Debug, Clone, Default, PartialEq, Resource, Serialize, Deserialize)]
#[resource(inherit = JobSet)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSetView {
    /// Standard metadata.
    pub metadata: ObjectMeta,
    /// The part of the spec that is read.
    pub spec: JobSetSpecView,
    /// What runs.
    pub status: JobSetStatus,
}

/// The part of a JobSet's spec that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSetSpecView {
    /// Whether the JobSet holds no Pods.
    pub suspend: bool,
    /// What it runs.
    pub replicated_jobs: Vec<ReplicatedJobView>,
}

impl JobSetSpecView {
    /// The finalizers that Pods of the JobSet are created with.
    pub fn pod_finalizers(&self) -> impl Iterator<Item = &str> {
        let templates = self.replicated_jobs.iter().filter_map(ReplicatedJobView::pods);
        templates.flat_map(|pods| &pods.finalizers).map(String::as_str)
    }
}

/// The part of a replicated job that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicatedJobView {
    /// The template of its Jobs.
    pub template: Option<JobTemplateView>,
}

impl ReplicatedJobView {
    fn pods(&self) -> Option<&PodMetadataView> {
        self.template.as_ref()?.spec.as_ref()?.template.as_ref()?.metadata.as_ref()
    }
}

/// The part of a template of Jobs that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobTemplateView {
    /// What its Jobs run.
    pub spec: Option<JobSpecView>,
}

/// The part of the spec of a Job that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSpecView {
    /// The template of its Pods.
    pub template: Option<PodTemplateView>,
}

/// The part of a template of Pods that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTemplateView {
    /// What its Pods are created with.
    pub metadata: Option<PodMetadataView>,
}

/// The part of the metadata of Pods that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodMetadataView {
    /// Their finalizers.
    pub finalizers: Vec<String>,
}

/// What a JobSet's controller reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSetStatus {
    /// `Completed`, `Failed` and others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Counts of Jobs for each replicated job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replicated_jobs_status: Vec<ReplicatedJobStatus>,
}

/// Counts of Jobs of one replicated job; absent counts are 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicatedJobStatus {
    /// Name of the replicated job.
    pub name: String,
    /// Jobs whose Pods are all ready or succeeded.
    pub ready: i32,
    /// Jobs that succeeded.
    pub succeeded: i32,
    /// Jobs that failed.
    pub failed: i32,
    /// Jobs with at least one running or pending Pod.
    pub active: i32,
    /// Jobs that are suspended.
    pub suspended: i32,
}

/// What a JobSet is to run.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate,
)]
#[kube(
    group = "jobset.x-k8s.io",
    version = "v1alpha2",
    kind = "JobSet",
    namespaced,
    status = "JobSetStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A group of Jobs that start, succeed and fail together."
)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSetSpec {
    /// The groups of Jobs, by name.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicated_jobs: Option<Vec<ReplicatedJob>>,
    /// Names of the Pods in the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// When the JobSet has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,
    /// What happens when a Job fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// In which order the groups start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_policy: Option<StartupPolicy>,
    /// Whether the JobSet holds no Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The Pod whose address the others are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
    /// The controller in charge of the JobSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
    /// Seconds after which the finished JobSet is deleted, at least 0.
    #[validate(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
    /// Volumes that belong to the JobSet. At most 50.
    #[validate(length(max = 50), nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claim_policies: Option<Vec<VolumeClaimPolicy>>,
}

/// A group of equal Jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicatedJob {
    /// Name of the group; the list's key.
    pub name: String,
    /// Name of a group of groups. Default `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
    /// The Job.
    pub template: JobTemplateSpec,
    /// Number of Jobs. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Groups that must be ready or complete first. At most 5.
    #[validate(length(max = 5))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<DependsOn>>,
}

/// A group that must be ready or complete before another starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DependsOn {
    /// Name of the group.
    pub name: String,
    /// `Ready` or `Complete`.
    pub status: String,
}

/// Names of the Pods in the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Network {
    /// Whether Pods have host names. Default true.
    #[serde(rename = "enableDNSHostnames", skip_serializing_if = "Option::is_none")]
    pub enable_dns_hostnames: Option<bool>,
    /// Sub-domain of the Pods. Default: the JobSet's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subdomain: Option<String>,
    /// Whether Pods have addresses before they are ready. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish_not_ready_addresses: Option<bool>,
}

/// When a JobSet has succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SuccessPolicy {
    /// `All` or `Any`.
    pub operator: String,
    /// The groups that count; none means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_replicated_jobs: Option<Vec<String>>,
}

/// What happens when a Job fails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FailurePolicy {
    /// How often the JobSet is restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_restarts: Option<i32>,
    /// `Recreate` (default), `BlockingRecreate` or `InPlaceRestart`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_strategy: Option<String>,
    /// Exceptions, the first that matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<FailurePolicyRule>>,
}

/// One exception of a failure policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FailurePolicyRule {
    /// Name of the rule.
    pub name: String,
    /// `FailJobSet`, `RestartJobSet`, `RestartJobSetAndIgnoreMaxRestarts`, `RestartJob` or
    /// `RestartJobAndIgnoreMaxRestarts`.
    pub action: String,
    /// Reasons of Job failures it applies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_job_failure_reasons: Option<Vec<String>>,
    /// Patterns of messages of Job failures it applies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_job_failure_message_patterns: Option<Vec<String>>,
    /// Groups it applies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_replicated_jobs: Option<Vec<String>>,
}

/// In which order the groups start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StartupPolicy {
    /// `AnyOrder` or `InOrder`.
    pub startup_policy_order: String,
}

/// The Pod whose address the others are told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Coordinator {
    /// Its group.
    pub replicated_job: String,
    /// Index of its Job. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_index: Option<i64>,
    /// Index of the Pod. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_index: Option<i64>,
}

/// Volumes that belong to the JobSet, and what becomes of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeClaimPolicy {
    /// The claims, without namespace. At most 50.
    #[validate(length(max = 50))]
    #[schemars(with = "Option<Vec<PersistentVolumeClaim>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templates: Option<Vec<VolumeClaimTemplate>>,
    /// What becomes of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_policy: Option<RetentionPolicy>,
}

/// A `PersistentVolumeClaim` to be, as the schema of a JobSet has it: with any `apiVersion` and `kind`, or
/// without (the client's own type of a claim refuses to be read then).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeClaimTemplate {
    /// Of no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Of no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its `name` is what the Pods' volumes refer to.
    pub metadata: ObjectMeta,
    /// What is claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<PersistentVolumeClaimSpec>,
    /// Of no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PersistentVolumeClaimStatus>,
}

/// What becomes of the volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RetentionPolicy {
    /// `Delete` (default) or `Retain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_deleted: Option<String>,
}
