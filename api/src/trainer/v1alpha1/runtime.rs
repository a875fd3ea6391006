//! `TrainingRuntime` and `ClusterTrainingRuntime`: the templates a TrainJob runs on.
//!
//! Both kinds have the same spec; they differ in scope alone. Neither has a status.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use validator::{Validate, ValidationError, ValidationErrors};

use crate::{jobset::JobSetTemplateSpec, validate};

/// How a framework runs: its ML policy, its gang and its JobSet template.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, Validate,
)]
#[kube(
    group = "trainer.kubeflow.org",
    version = "v1alpha1",
    kind = "TrainingRuntime",
    plural = "trainingruntimes",
    singular = "trainingruntime",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    doc = "A training runtime for the TrainJobs of one namespace."
)]
#[serde(rename_all = "camelCase", default)]
pub struct TrainingRuntimeSpec {
    /// The framework and its settings.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ml_policy: Option<MlPolicy>,
    /// How the Pods are scheduled together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_group_policy: Option<PodGroupPolicy>,
    /// The JobSet a TrainJob becomes.
    #[validate(nested)]
    pub template: JobSetTemplateSpec,
}

/// The cluster-wide twin of [`TrainingRuntimeSpec`], field for field.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "trainer.kubeflow.org",
    version = "v1alpha1",
    kind = "ClusterTrainingRuntime",
    plural = "clustertrainingruntimes",
    singular = "clustertrainingruntime",
    derive = "Default",
    derive = "PartialEq",
    doc = "A training runtime for the TrainJobs of every namespace."
)]
#[serde(transparent)]
pub struct ClusterTrainingRuntimeSpec(pub TrainingRuntimeSpec);

impl Validate for ClusterTrainingRuntimeSpec {
    fn validate(&self) -> Result<(), ValidationErrors> {
        self.0.validate()
    }
}

/// The framework and its settings. At most one framework; none means plain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
#[validate(schema(function = "ml_policy"))]
pub struct MlPolicy {
    /// Training nodes where the TrainJob does not say; absent or below 1 means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_nodes: Option<i32>,
    /// PyTorch's elastic launcher.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torch: Option<TorchPolicy>,
    /// MPI with ssh between the nodes.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi: Option<MpiPolicy>,
    /// JAX's distributed runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jax: Option<JaxPolicy>,
    /// `XGBoost`'s tracker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xgboost: Option<XgBoostPolicy>,
    /// The Flux resource manager.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flux: Option<FluxPolicy>,
}

/// Settings of PyTorch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct TorchPolicy {
    /// Further containers that get the launcher's environment.
    #[validate(nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_injection: Option<EnvInjection>,
}

/// Which further containers get the launcher's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvInjection {
    /// By job. At most 16.
    #[validate(length(max = 16), nested)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<EnvInjectionTarget>>,
}

/// Containers of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvInjectionTarget {
    /// Name of the replicated job; the list's key.
    #[validate(length(min = 1, max = 253))]
    pub job_name: String,
    /// Names of its containers, 1 to 8, a set; `node` is not among them, it always gets them.
    #[validate(length(min = 1, max = 8), custom(function = "validate::container_names"))]
    pub container_names: Vec<String>,
}

/// Settings of MPI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct MpiPolicy {
    /// Processes on each node, at least 1. Default 1.
    #[validate(custom(
        function = "validate::at_least_one",
        message = "NumProcPerNode in mpiPolicy must be >= 1"
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_proc_per_node: Option<i32>,
    /// `OpenMPI` (default) or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_implementation: Option<String>,
    /// Where the ssh keys are mounted. Default: `.ssh` in the home directory of root.
    #[validate(length(max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_auth_mount_path: Option<String>,
    /// Whether the launcher is a training node too. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_launcher_as_node: Option<bool>,
}

/// Settings of JAX: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JaxPolicy {}

/// Settings of `XGBoost`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct XgBoostPolicy {}

/// Settings of Flux.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct FluxPolicy {
    /// Processes on each node, at least 1. Default 1.
    #[validate(custom(
        function = "validate::at_least_one",
        message = "NumProcPerNode in fluxPolicy must be >= 1"
    ))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_proc_per_node: Option<i32>,
}

/// How the Pods are scheduled together. One of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupPolicy {
    /// By the coscheduling plugin of scheduler-plugins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coscheduling: Option<CoschedulingPolicy>,
    /// By Volcano.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volcano: Option<VolcanoPolicy>,
}

/// Settings of coscheduling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CoschedulingPolicy {
    /// Seconds to wait for the gang to be complete. Default 60.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<i32>,
}

/// Settings of Volcano.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VolcanoPolicy {
    /// Which part of the network the gang may span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopology>,
}

/// Which part of the network the gang may span.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkTopology {
    /// `hard` (default) or `soft`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The highest tier of the topology. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest_tier_allowed: Option<i64>,
}

/// `mlPolicy`: at most one framework.
fn ml_policy(policy: &MlPolicy) -> Result<(), ValidationError> {
    let MlPolicy { num_nodes: _, torch, mpi, jax, xgboost, flux } = policy;
    let frameworks =
        [torch.is_some(), mpi.is_some(), jax.is_some(), xgboost.is_some(), flux.is_some()];
    validate::refuse_unless(
        frameworks.into_iter().filter(|present| *present).count() <= 1,
        "union",
        "Only one of the policy can be configured",
    )
}
