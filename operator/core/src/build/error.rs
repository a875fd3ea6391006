//! Why a JobSet cannot be built: always something a person wrote and can change.

use thiserror::Error;

use super::size::MAX_OBJECTS;

/// Why a TrainJob and its runtime do not make a JobSet.
///
/// Each message names the field to change and what would be right; none goes away by waiting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// The runtime asks for two schedulers, and a Pod has one.
    #[error(
        "podGroupPolicy.{0} and podGroupPolicy.{1} of the runtime exclude each other: a Pod has one scheduler, set one of them"
    )]
    TwoSchedulers(&'static str, &'static str),
    /// An `envInjection` target names a container the template lacks.
    #[error(
        "envInjection target podSet \"{job}\" container \"{container}\" not found in runtime template: \
         mlPolicy.torch.envInjection.targets of the runtime must name replicated jobs and containers of its template"
    )]
    EnvInjectionTarget {
        /// Name of the replicated job.
        job: String,
        /// Name of the container.
        container: String,
    },
    /// A torchtune recipe is asked for, and the runtime's name does not say for which model.
    #[error(
        "spec.runtimeRef.name: {runtime:?} does not say which model the command [\"tune\", \"run\"] is to fine-tune: \
         use a runtime whose name is three words with dashes between, the model's family and size last, \
         such as torchtune-llama3.2-1b, or write recipe and config into spec.trainer.command"
    )]
    Model {
        /// Name of the runtime.
        runtime: String,
    },
    /// More parts than the operator reads.
    #[error(
        "the JobSet would consist of more than {MAX_OBJECTS} JSON objects: \
         use fewer volumes, variables and patches in the TrainJob or the runtime"
    )]
    TooLarge,
    /// An implementation of MPI that is not known.
    #[error(
        "mlPolicy.mpi.mpiImplementation of the runtime is {0:?}: write OpenMPI, or leave the field out"
    )]
    MpiImplementation(String),
    /// More hosts than a ConfigMap can list.
    #[error(
        "spec.trainer.numNodes, or the runtime's nodes and replicas: so many hosts do not fit into a \
         ConfigMap of 1 MiB; use fewer nodes with more processes each"
    )]
    TooManyHosts,
    /// A setting of Flux that is not known before there are Pods.
    #[error(
        "{field}: {name} has a valueFrom, but it goes into Flux's configuration and the Pod template; \
         give it a plain value"
    )]
    FluxSetting {
        /// The field that holds it.
        field: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// A resource quantity that is not one.
    #[error(
        "spec.trainer.resourcesPerNode, or the runtime's resources: {value:?} is not a quantity of {resource}: \
         write a number with an optional suffix, such as 2, 500m or 4Gi"
    )]
    Quantity {
        /// The resource.
        resource: String,
        /// What should be its quantity.
        value: String,
    },
    /// A patch and the template do not make a JobSet together.
    #[error(
        "spec.runtimePatches: the patch of manager {manager:?} does not fit the runtime's template: {problem}"
    )]
    Patch {
        /// The manager whose patch it is.
        manager: String,
        /// What is wrong.
        problem: String,
    },
    /// JobSet would refuse the names of the objects it has to make.
    #[error("{0}")]
    NameTooLong(String),
    /// The JobSet cannot be written down.
    #[error("the JobSet cannot be written as JSON: {0}")]
    Unwritable(String),
    /// The runtime cannot be written down.
    #[error("the runtime cannot be kept as a snapshot: {0}")]
    Snapshot(String),
}

impl BuildError {
    pub(crate) fn unwritable(error: &serde_json::Error) -> Self {
        Self::Unwritable(error.to_string())
    }
}
