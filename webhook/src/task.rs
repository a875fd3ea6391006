//! What is asked of the server: one task for each path, which are Kubeflow Trainer's.

use trainjob_api::v1alpha1::{
    CLUSTER_TRAINING_RUNTIME_KIND, DEFAULT_TRAIN_JOB_PATH, TRAIN_JOB_KIND, TRAINING_RUNTIME_KIND,
    VALIDATE_CLUSTER_TRAINING_RUNTIME_PATH, VALIDATE_TRAIN_JOB_PATH,
    VALIDATE_TRAINING_RUNTIME_PATH,
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
            Self::DefaultTrainJob => DEFAULT_TRAIN_JOB_PATH,
            Self::ValidateTrainJob => VALIDATE_TRAIN_JOB_PATH,
            Self::ValidateTrainingRuntime => VALIDATE_TRAINING_RUNTIME_PATH,
            Self::ValidateClusterTrainingRuntime => VALIDATE_CLUSTER_TRAINING_RUNTIME_PATH,
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
