//! Frameworks: what a runtime's `mlPolicy` asks for.
//!
//! A framework is one folder here: `build` writes what its processes need into a job's objects, `validate` judges jobs
//! and runtimes before they are stored. [`Framework`] is the one place that tells them apart. A new one is a folder, a
//! variant, and an arm wherever the compiler then asks for one.

mod flux;
mod jax;
mod mpi;
mod plain;
mod torch;
mod xgboost;

use trainjob_api::{
    TrainJob,
    jobset::ReplicatedJob,
    v1alpha1::runtime::{FluxPolicy, MpiPolicy, TorchPolicy, TrainingRuntimeSpec},
};

use crate::{
    admission::field::FieldError,
    build::{draft::Draft, error::BuildError},
};

/// The framework of a runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Framework<'a> {
    /// None: replicas of a container, and how many.
    Plain,
    /// PyTorch, by `torchrun` or torchtune.
    Torch(&'a TorchPolicy),
    /// JAX.
    Jax,
    /// `XGBoost`.
    XgBoost,
    /// MPI.
    Mpi(&'a MpiPolicy),
    /// Flux.
    Flux(&'a FluxPolicy),
}

impl<'a> Framework<'a> {
    /// The framework that a runtime asks for. The schema admits one; of several the first here counts.
    pub(crate) fn of(spec: &'a TrainingRuntimeSpec) -> Self {
        let Some(policy) = &spec.ml_policy else { return Self::Plain };
        let mpi = policy.mpi.as_ref().map(Self::Mpi);
        mpi.or_else(|| policy.flux.as_ref().map(Self::Flux))
            .or_else(|| policy.jax.as_ref().map(|_| Self::Jax))
            .or_else(|| policy.xgboost.as_ref().map(|_| Self::XgBoost))
            .or_else(|| policy.torch.as_ref().map(Self::Torch))
            .unwrap_or(Self::Plain)
    }

    /// Writes what its processes need into the draft of a job's objects.
    ///
    /// # Errors
    ///
    /// The job and its runtime do not fit each other.
    pub(crate) fn build(self, draft: &mut Draft<'_>) -> Result<(), BuildError> {
        match self {
            Self::Plain => plain::enforce(draft),
            Self::Torch(policy) => torch::build::enforce(draft, policy)?,
            Self::Jax => jax::enforce(draft),
            Self::XgBoost => xgboost::build::enforce(draft)?,
            Self::Mpi(policy) => mpi::build::enforce(draft, policy)?,
            Self::Flux(policy) => flux::build::enforce(draft, policy)?,
        }
        Ok(())
    }

    /// What is wrong with a job, drafted on a runtime of this framework.
    pub(crate) fn validate(self, job: &TrainJob, draft: &Draft<'_>) -> Vec<FieldError> {
        match self {
            Self::Torch(policy) => torch::validate::check(job, draft, policy),
            Self::XgBoost => xgboost::validate::check(job),
            Self::Mpi(policy) => mpi::validate::check(job, draft, policy),
            Self::Flux(_) => flux::validate::check(draft).into_iter().collect(),
            Self::Plain | Self::Jax => Vec::new(),
        }
    }

    /// What is wrong with the replicated jobs of a runtime of this framework.
    pub(crate) fn validate_runtime(self, jobs: &[ReplicatedJob]) -> Vec<FieldError> {
        match self {
            Self::Mpi(policy) => mpi::validate::check_runtime(policy, jobs),
            Self::Plain | Self::Torch(_) | Self::Jax | Self::XgBoost | Self::Flux(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::build::{
        build,
        testing::{job, runtime},
    };

    #[test]
    fn policy_that_asks_for_nothing_is_plain() {
        for spec in [
            json!({}),
            json!({"mlPolicy": {}}),
            json!({"mlPolicy": {"numNodes": 2}}),
            json!({"podGroupPolicy": {}}),
        ] {
            assert!(build(&job(&json!({})), &runtime(&spec)).is_ok(), "{spec}");
        }
    }
}
