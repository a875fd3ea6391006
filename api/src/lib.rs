//! The API of the TrainJob operator: types, constants, conditions and time.
//!
//! Everything that names something in Kubernetes lives here, and nothing that decides or performs
//! anything does. The crate has no I/O and no async runtime in its dependency tree, so that the pure
//! decision core (`trainjob-core`) can use it.
//!
//! * [`trainer`]: TrainJobs and their runtimes, by version of their API. The version that is stored is [`v1alpha1`].
//! * [`lifecycle`]: retention policies.
//! * [`jobset`]: the parts of JobSet `v1alpha2` that are written and read.
//! * [`conditions`]: condition types and reasons, and how a condition list is changed.
//! * [`time`]: the one bridge between Kubernetes' timestamps and ours.
//! * [`constants`]: names that clients rely on.
//! * [`crd`]: the `CustomResourceDefinition`s, made from the types.
//! * [`validate`]: what those require of a value, as functions.

pub mod conditions;
pub mod constants;
pub mod crd;
pub mod jobset;
pub mod lifecycle;
pub mod podgroup;
pub mod time;
pub mod trainer;
pub mod validate;

pub use jobset::JobSet;
pub use trainer::v1alpha1::{
    self,
    runtime::{ClusterTrainingRuntime, TrainingRuntime},
    train_job::TrainJob,
};
