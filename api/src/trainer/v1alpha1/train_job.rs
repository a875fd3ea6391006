//! `TrainJob`: what a user submits to train a model.
//!
//! Reading is lenient: every field but [`JobStatus`]'s and [`TrainerMetric`]'s has a default, unknown
//! ones are ignored and limits are not looked at, since a stored object may be older or newer than the
//! schema. What the schema requires is in [`crate::crd`], and as functions in [`crate::validate`].
//!
//! One object that the schema admits cannot be read: upstream's schema does not require `spec`, and a
//! TrainJob without one is refused by serde. It names no runtime, so nothing could be done for it.
//! Watches therefore read through a type that keeps the metadata of what it cannot read; one such object
//! does not stop a watch.

use k8s_openapi::{
    api::core::v1::{EnvVar, LocalObjectReference, ResourceRequirements},
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use validator::{Validate, ValidationError, ValidationErrors};

use super::patches::RuntimePatch;
use crate::validate;

/// What to train, on which runtime, and for how long it may run and stay.
///
/// Only `runtimeRef` is required by the schema.
#[expect(clippy::duplicated_attributes, reason = "what columns have in common is no duplicate")]
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate,
)]
#[kube(
    group = "trainer.kubeflow.org",
    version = "v1alpha1",
    kind = "TrainJob",
    plural = "trainjobs",
    singular = "trainjob",
    namespaced,
    status = "TrainJobStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A training job: from submission to removal.",
    printcolumn(name = "State", type_ = "string", json_path = ".status.conditions[-1:].type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // Priority 1: only `kubectl get --output wide` shows them.
    printcolumn(
        name = "Runtime",
        type_ = "string",
        json_path = ".spec.runtimeRef.name",
        priority = 1
    ),
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend", priority = 1),
    printcolumn(
        name = "Deadline",
        type_ = "integer",
        json_path = ".spec.activeDeadlineSeconds",
        description = "activeDeadlineSeconds",
        priority = 1
    ),
    printcolumn(
        name = "TTL",
        type_ = "integer",
        json_path = ".spec.ttlSecondsAfterFinished",
        description = "ttlSecondsAfterFinished",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct TrainJobSpec {
    /// The runtime to train on. Immutable.
    #[validate(nested)]
    pub runtime_ref: RuntimeRef,
    /// Steps that fetch dataset and model before training. Immutable.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initializer: Option<Initializer>,
    /// The training step itself. Immutable as a whole. An empty one differs from an absent one: only
    /// with it does a framework add its environment.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trainer: Option<Trainer>,
    /// Changes to the runtime's template, applied in order. At most 16.
    #[validate(length(max = 16), nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_patches: Option<Vec<RuntimePatch>>,
    /// Whether the job holds no Pods. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Seconds after which an unfinished job is failed with reason `DeadlineExceeded`, at least 1.
    #[validate(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after which a finished job is deleted with everything it owns, at least 0. Unset: never.
    #[validate(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
    /// The controller in charge of this job. Default: this operator. Immutable.
    #[validate(length(max = 253), custom(function = "validate::managed_by"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// Names a TrainingRuntime in the job's namespace or a ClusterTrainingRuntime.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeRef {
    /// Name of the runtime, 1 to 253 characters.
    #[validate(length(min = 1, max = 253))]
    pub name: String,
    /// API group of the runtime. Default `trainer.kubeflow.org`.
    #[validate(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind of the runtime. Default `ClusterTrainingRuntime`.
    #[validate(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// What to fetch before training.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct Initializer {
    /// The dataset.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<InitializerStep>,
    /// The pretrained model.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<InitializerStep>,
}

/// Where one initializer fetches from, and with what.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializerStep {
    /// URI such as `hf://org/name`; empty means the runtime's own. At most 2048 characters.
    #[validate(length(max = 2048), custom(function = "validate::storage_uri"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_uri: Option<String>,
    /// Environment of the initializer's container. At most 128.
    #[validate(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
    /// Secret whose keys become environment variables, such as access tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// The training step: image, command, scale and resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct Trainer {
    /// Image of the training container. Default: the runtime's. At most 500 characters.
    #[validate(length(max = 500))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Entry point of the training container; an empty list replaces the runtime's too. At most 128.
    #[validate(length(max = 128), custom(function = "validate::words"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Arguments of the entry point; an empty list replaces the runtime's too. At most 128.
    #[validate(length(max = 128), custom(function = "validate::words"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Environment of the training container. At most 128.
    #[validate(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EnvVar>>,
    /// Number of training nodes (Pods), at least 0. Default: the runtime's.
    #[validate(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_nodes: Option<i32>,
    /// Resources of each training node, laid over the runtime's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_per_node: Option<ResourceRequirements>,
    /// Processes on each node, at least 1. Default: the framework decides.
    #[validate(custom(
        function = "validate::at_least_one",
        message = "numProcPerNode must be greater than or equal to 1"
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_proc_per_node: Option<i32>,
}

/// What is known of a TrainJob's course. Never stored empty (the schema forbids `status: {}`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct TrainJobStatus {
    /// `Suspended`, `Complete`, `Failed`; none for a job that simply runs. At most 8.
    #[validate(length(max = 8))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Counts of Jobs for each replicated job of the JobSet. At most 100.
    #[validate(length(max = 100), nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs_status: Option<Vec<JobStatus>>,
    /// Progress that the training process reports about itself. Written by others, never touched here.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trainer_status: Option<TrainerStatus>,
}

/// Counts of Jobs of one replicated job. All are written, 0 included.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Validate,
)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// Name of the replicated job, 1 to 253 characters.
    #[validate(length(min = 1, max = 253))]
    pub name: String,
    /// Jobs whose Pods are all ready or succeeded.
    #[validate(range(min = 0))]
    pub ready: i32,
    /// Jobs that succeeded.
    #[validate(range(min = 0))]
    pub succeeded: i32,
    /// Jobs that failed.
    #[validate(range(min = 0))]
    pub failed: i32,
    /// Jobs with at least one running or pending Pod.
    #[validate(range(min = 0))]
    pub active: i32,
    /// Jobs that are suspended.
    #[validate(range(min = 0))]
    pub suspended: i32,
}

/// Progress as the training process reports it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
#[validate(schema(function = "trainer_status"))]
pub struct TrainerStatus {
    /// 0 to 100.
    #[validate(range(min = 0, max = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_percentage: Option<i32>,
    /// Seconds that are left, at least 0.
    #[validate(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_remaining_seconds: Option<i32>,
    /// Metrics by name. At most 256.
    #[validate(length(max = 256), nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Vec<TrainerMetric>>,
    /// When this was reported. The schema requires it whenever `trainerStatus` is present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated_time: Option<Time>,
}

/// One reported metric.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct TrainerMetric {
    /// 1 to 64 characters.
    #[validate(length(min = 1, max = 64))]
    pub name: String,
    /// 1 to 64 characters; a string, so that nothing is lost.
    #[validate(length(min = 1, max = 64))]
    pub value: String,
}

impl TrainJob {
    /// Everything the schema requires of it, its name included.
    ///
    /// # Errors
    ///
    /// All violations by field; those of the name are under `metadata.name`.
    pub fn validate_with_name(&self) -> Result<(), ValidationErrors> {
        let mut errors = ValidationErrors::new();
        if let Err(error) = validate::name(self.metadata.name.as_deref().unwrap_or_default()) {
            errors.add("metadata.name", error);
        }
        let nested = ValidationErrors::merge(Ok(()), "spec", self.spec.validate());
        let status = self.status.as_ref().map_or(Ok(()), Validate::validate);
        match ValidationErrors::merge(nested, "status", status) {
            Ok(()) => {}
            Err(found) => errors.errors_mut().extend(found.into_errors()),
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// `trainerStatus`: it says when it was reported.
fn trainer_status(status: &TrainerStatus) -> Result<(), ValidationError> {
    validate::refuse_unless(
        status.last_updated_time.is_some(),
        "required",
        "lastUpdatedTime is required when trainerStatus is present",
    )
}
