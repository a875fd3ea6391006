//! The kinds that are watched, and what there is to say of each.
//!
//! Readiness, metrics and cache iterate over [`Kind::ALL`]. The compiler lists the match arms of a new kind, and its watch
//! is begun in [`crate::cache::watch`]. The kinds of PodGroup follow from the schedulers that `trainjob-core` knows.

use trainjob_api::{
    jobset,
    v1alpha1::{CLUSTER_TRAINING_RUNTIME_KIND, TRAIN_JOB_KIND, TRAINING_RUNTIME_KIND},
};
use trainjob_core::scheduler::Scheduler;

/// How to get the kinds that others install.
const INSTALL_CRDS: &str =
    "install them with: kubectl apply --server-side -f charts/trainjob-operator/files/crds";
const INSTALL_JOBSET: &str =
    "install JobSet 0.12 or later: https://jobset.sigs.k8s.io/docs/installation";

/// A kind that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `TrainJob`.
    TrainJob,
    /// `JobSet`.
    JobSet,
    /// `TrainingRuntime`.
    TrainingRuntime,
    /// `ClusterTrainingRuntime`.
    ClusterTrainingRuntime,
    /// `PodGroup`, which each scheduler has its own kind of.
    PodGroup(Scheduler),
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; Self::ALWAYS.len() + Scheduler::ALL.len()] = {
        let mut all = [Self::TrainJob; Self::ALWAYS.len() + Scheduler::ALL.len()];
        let (always, groups) = all.split_at_mut(Self::ALWAYS.len());
        always.copy_from_slice(&Self::ALWAYS);
        let (mut rest, mut schedulers) = (groups, Scheduler::ALL.as_slice());
        while let (Some((kind, kinds)), Some((scheduler, more))) =
            (rest.split_first_mut(), schedulers.split_first())
        {
            *kind = Self::PodGroup(*scheduler);
            (rest, schedulers) = (kinds, more);
        }
        all
    };

    /// Those that do not depend on a scheduler.
    const ALWAYS: [Self; 4] =
        [Self::TrainJob, Self::JobSet, Self::TrainingRuntime, Self::ClusterTrainingRuntime];

    /// What readiness, metrics and logs call it. Each scheduler has a kind of the name PodGroup.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TrainJob => TRAIN_JOB_KIND,
            Self::JobSet => jobset::KIND,
            Self::TrainingRuntime => TRAINING_RUNTIME_KIND,
            Self::ClusterTrainingRuntime => CLUSTER_TRAINING_RUNTIME_KIND,
            Self::PodGroup(scheduler) => scheduler.pod_group_name(),
        }
    }

    /// How to install it; `None` if it need not be there.
    #[must_use]
    pub const fn install(self) -> Option<&'static str> {
        match self {
            Self::TrainJob | Self::TrainingRuntime | Self::ClusterTrainingRuntime => {
                Some(INSTALL_CRDS)
            }
            Self::JobSet => Some(INSTALL_JOBSET),
            Self::PodGroup(_) => None,
        }
    }
}
