//! What is asked of the server: one task for each path, which are Kubeflow Trainer's.

use trainjob_api::constants::{
    CLUSTER_TRAINING_RUNTIME_KIND, TRAIN_JOB_KIND, TRAINING_RUNTIME_KIND,
};

/// What is to be done, and with which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Fill in what a TrainJob leaves out.
    DefaultTrainJob,
    /// Judge a TrainJob.
    ValidateTrainJob,
    /// Judge a TrainingRuntime.
    ValidateTrainingRuntime,
    /// Judge a ClusterTrainingRuntime.
    ValidateClusterTrainingRuntime,
}

impl Task {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::DefaultTrainJob,
        Self::ValidateTrainJob,
        Self::ValidateTrainingRuntime,
        Self::ValidateClusterTrainingRuntime,
    ];

    /// The path that stands for it.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::DefaultTrainJob => "/mutate-trainer-kubeflow-org-v1alpha1-trainjob",
            Self::ValidateTrainJob => "/validate-trainer-kubeflow-org-v1alpha1-trainjob",
            Self::ValidateTrainingRuntime => {
                "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime"
            }
            Self::ValidateClusterTrainingRuntime => {
                "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
            }
        }
    }

    /// The task of a path, if it stands for one.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.path() == path)
    }

    /// The kind of object.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::DefaultTrainJob | Self::ValidateTrainJob => TRAIN_JOB_KIND,
            Self::ValidateTrainingRuntime => TRAINING_RUNTIME_KIND,
            Self::ValidateClusterTrainingRuntime => CLUSTER_TRAINING_RUNTIME_KIND,
        }
    }
}
