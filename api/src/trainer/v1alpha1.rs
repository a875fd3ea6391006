//! `trainer.kubeflow.org/v1alpha1`, the only version there is: its names, its types and the paths of its webhooks.
//!
//! * [`train_job`]: the `TrainJob` a user submits.
//! * [`patches`]: `spec.runtimePatches`, the changes a TrainJob makes to its runtime's template.
//! * [`runtime`]: `TrainingRuntime` and `ClusterTrainingRuntime`, the templates it runs on.

pub mod patches;
pub mod runtime;
pub mod train_job;

/// The API group.
pub const GROUP: &str = "trainer.kubeflow.org";
/// The version.
pub const VERSION: &str = "v1alpha1";
/// Both, as `apiVersion` has them.
pub const API_VERSION: &str = "trainer.kubeflow.org/v1alpha1";

/// Kind of a TrainJob.
pub const TRAIN_JOB_KIND: &str = "TrainJob";
/// Kind of a namespaced runtime.
pub const TRAINING_RUNTIME_KIND: &str = "TrainingRuntime";
/// Kind of a cluster-wide runtime, and what `runtimeRef.kind` means when it is absent.
pub const CLUSTER_TRAINING_RUNTIME_KIND: &str = "ClusterTrainingRuntime";

/// Path of the mutating webhook for TrainJobs.
pub const DEFAULT_TRAIN_JOB_PATH: &str = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob";
/// Path of the validating webhook for TrainJobs.
pub const VALIDATE_TRAIN_JOB_PATH: &str = "/validate-trainer-kubeflow-org-v1alpha1-trainjob";
/// Path of the validating webhook for namespaced runtimes.
pub const VALIDATE_TRAINING_RUNTIME_PATH: &str =
    "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime";
/// Path of the validating webhook for cluster-wide runtimes.
pub const VALIDATE_CLUSTER_TRAINING_RUNTIME_PATH: &str =
    "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime";
