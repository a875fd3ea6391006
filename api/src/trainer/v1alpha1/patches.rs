//! `spec.runtimePatches`: what a TrainJob, or a queueing system on its behalf, changes in the runtime.
//!
//! Each entry belongs to a manager and is merged into the runtime's JobSet template with Kubernetes'
//! strategic merge. Only what is listed here can be changed.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Affinity, EnvVar, LocalObjectReference, PodSchedulingGate, PodSecurityContext,
        SecurityContext, Toleration, Volume, VolumeMount,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use validator::Validate;

/// The changes of one manager.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimePatch {
    /// Who makes the change, a domain-prefixed path such as `kueue.x-k8s.io/manager`; the list's key.
    #[validate(length(min = 1, max = 253))]
    pub manager: String,
    /// When it last changed. Set by admission; informational.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// The changes.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training_runtime_spec: Option<TrainingRuntimeSpecPatch>,
}

/// Changes to a runtime's spec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct TrainingRuntimeSpecPatch {
    /// Changes to the JobSet template.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<JobSetTemplatePatch>,
}

/// Changes to a JobSet template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSetTemplatePatch {
    /// Labels and annotations for the JobSet; other metadata is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Changes to the JobSet's spec.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<JobSetSpecPatch>,
}

/// Changes to a JobSet's spec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSetSpecPatch {
    /// Changes by replicated job. At most 100.
    #[validate(length(max = 100), nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicated_jobs: Option<Vec<ReplicatedJobPatch>>,
}

/// Changes to one replicated job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicatedJobPatch {
    /// Name of the replicated job; the list's key.
    #[validate(length(min = 1, max = 253))]
    pub name: String,
    /// Changes to its Job template.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<JobTemplatePatch>,
}

/// Changes to a Job template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct JobTemplatePatch {
    /// Metadata of the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Changes to the Job's spec.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<JobSpecPatch>,
}

/// Changes to a Job's spec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpecPatch {
    /// Changes to its Pod template.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplatePatch>,
}

/// Changes to a Pod template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTemplatePatch {
    /// Metadata of the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Changes to the Pods' spec.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<PodSpecPatch>,
}

/// The fields of a Pod that may be changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpecPatch {
    /// Service account of the Pods.
    #[validate(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Volumes, merged by name. At most 128.
    #[validate(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<Volume>>,
    /// Init containers, merged by name. At most 64.
    #[validate(length(max = 64), nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_containers: Option<Vec<ContainerPatch>>,
    /// Containers, merged by name. At most 64.
    #[validate(length(max = 64), nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<ContainerPatch>>,
    /// Secrets to pull images with, merged by name. At most 64.
    #[validate(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,
    /// Security settings of the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,
    /// Seconds between SIGTERM and SIGKILL, at least 0.
    #[validate(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// Labels a node must have, merged by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Scheduling constraints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Tolerations; the list replaces the runtime's. At most 128.
    #[validate(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// Scheduling gates, merged by name. At most 16.
    #[validate(length(max = 16))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_gates: Option<Vec<PodSchedulingGate>>,
}

/// The fields of a container that may be changed. Image, command, args and resources may not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPatch {
    /// Name of the container; the list's key.
    #[validate(length(min = 1, max = 253))]
    pub name: String,
    /// Environment, merged by name. At most 128.
    #[validate(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
    /// Volume mounts, merged by mount path. At most 128.
    #[validate(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<VolumeMount>>,
    /// Security settings of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
}
