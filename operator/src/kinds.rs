//! The kinds that are watched, and what there is to say of each.
//!
//! Readiness, metrics and cache iterate over [`Kind::ALL`]. A kind of PodGroup is a [`PodGroupKind`]; the compiler lists the
//! match arms of a new one, and its watch is begun in [`crate::cache::watch`].

use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use trainjob_api::{
    jobset,
    podgroup::{CoschedulingPodGroup, VolcanoPodGroup},
    v1alpha1::{CLUSTER_TRAINING_RUNTIME_KIND, TRAIN_JOB_KIND, TRAINING_RUNTIME_KIND},
};
use trainjob_core::facts::{PodGroupFacts, PodGroupSpec, Scheduler};

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
    pub const ALL: [Self; 6] = [
        Self::TrainJob,
        Self::JobSet,
        Self::TrainingRuntime,
        Self::ClusterTrainingRuntime,
        Self::PodGroup(Scheduler::Coscheduling),
        Self::PodGroup(Scheduler::Volcano),
    ];

    /// What readiness, metrics and logs call it. There are two kinds of the name PodGroup.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TrainJob => TRAIN_JOB_KIND,
            Self::JobSet => jobset::KIND,
            Self::TrainingRuntime => TRAINING_RUNTIME_KIND,
            Self::ClusterTrainingRuntime => CLUSTER_TRAINING_RUNTIME_KIND,
            Self::PodGroup(Scheduler::Coscheduling) => CoschedulingPodGroup::NAME,
            Self::PodGroup(Scheduler::Volcano) => VolcanoPodGroup::NAME,
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

/// A kind of PodGroup.
pub trait PodGroupKind:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + 'static
{
    /// Whose it is.
    const SCHEDULER: Scheduler;
    /// See [`Kind::name`].
    const NAME: &'static str;

    /// The facts in a stored one.
    fn facts(self) -> PodGroupFacts;
}

impl PodGroupKind for CoschedulingPodGroup {
    const SCHEDULER: Scheduler = Scheduler::Coscheduling;
    const NAME: &'static str = "PodGroup of scheduler-plugins";

    fn facts(self) -> PodGroupFacts {
        PodGroupFacts::of(&self.metadata, PodGroupSpec::Coscheduling(self.spec))
    }
}

impl PodGroupKind for VolcanoPodGroup {
    const SCHEDULER: Scheduler = Scheduler::Volcano;
    const NAME: &'static str = "PodGroup of Volcano";

    fn facts(self) -> PodGroupFacts {
        PodGroupFacts::of(&self.metadata, PodGroupSpec::Volcano(self.spec))
    }
}
