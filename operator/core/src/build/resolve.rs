//! Which runtime a TrainJob runs on.
//!
//! `spec.runtimeRef` names one of two kinds, which differ in scope alone; from here on there is one
//! type, [`Runtime`], that remembers which it was.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use thiserror::Error;
use trainjob_api::{
    ClusterTrainingRuntime, TrainJob, TrainingRuntime,
    v1alpha1::{
        CLUSTER_TRAINING_RUNTIME_KIND, GROUP, TRAINING_RUNTIME_KIND, runtime::TrainingRuntimeSpec,
        train_job::RuntimeRef,
    },
};

/// The identity of a runtime in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuntimeKey {
    /// A ClusterTrainingRuntime, for the TrainJobs of every namespace.
    Cluster {
        /// Its name.
        name: String,
    },
    /// A TrainingRuntime, for the TrainJobs of its namespace.
    Namespaced {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl RuntimeKey {
    /// The runtime's kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cluster { .. } => CLUSTER_TRAINING_RUNTIME_KIND,
            Self::Namespaced { .. } => TRAINING_RUNTIME_KIND,
        }
    }

    /// The runtime's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Cluster { name } | Self::Namespaced { name, .. } => name,
        }
    }
}

impl fmt::Display for RuntimeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster { name } => write!(f, "{CLUSTER_TRAINING_RUNTIME_KIND} {name}"),
            Self::Namespaced { namespace, name } => {
                write!(f, "{TRAINING_RUNTIME_KIND} {namespace}/{name}")
            }
        }
    }
}

/// `spec.runtimeRef` names a kind that is not a runtime.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unsupported runtime: {kind}.{group}")]
pub struct UnsupportedRuntime {
    /// The kind it names.
    pub kind: String,
    /// The API group it names.
    pub group: String,
}

/// The runtime that a TrainJob names.
///
/// An absent kind or group means what the schema's defaults make of it, so that objects which never
/// met the schema (an older CRD, a test) mean the same.
///
/// # Errors
///
/// When kind and group together are not one of the two runtimes.
pub fn runtime_key(job: &TrainJob) -> Result<RuntimeKey, UnsupportedRuntime> {
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    referenced_runtime(&job.spec.runtime_ref, namespace)
}

/// The runtime that a TrainJob of a namespace refers to, as [`runtime_key`] tells it.
///
/// # Errors
///
/// When kind and group together are not one of the two runtimes.
pub fn referenced_runtime(
    reference: &RuntimeRef,
    namespace: &str,
) -> Result<RuntimeKey, UnsupportedRuntime> {
    let group = reference.api_group.as_deref().unwrap_or(GROUP);
    let kind = reference.kind.as_deref().unwrap_or(CLUSTER_TRAINING_RUNTIME_KIND);
    let name = reference.name.clone();
    match (group, kind) {
        (GROUP, CLUSTER_TRAINING_RUNTIME_KIND) => Ok(RuntimeKey::Cluster { name }),
        (GROUP, TRAINING_RUNTIME_KIND) => {
            Ok(RuntimeKey::Namespaced { namespace: namespace.into(), name })
        }
        _ => Err(UnsupportedRuntime { kind: kind.into(), group: group.into() }),
    }
}

/// A runtime of either kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Runtime {
    /// Which one it is.
    pub key: RuntimeKey,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it says.
    pub spec: TrainingRuntimeSpec,
}

impl From<TrainingRuntime> for Runtime {
    fn from(TrainingRuntime { metadata, spec }: TrainingRuntime) -> Self {
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let name = metadata.name.clone().unwrap_or_default();
        Self { key: RuntimeKey::Namespaced { namespace, name }, metadata, spec }
    }
}

impl From<ClusterTrainingRuntime> for Runtime {
    fn from(ClusterTrainingRuntime { metadata, spec }: ClusterTrainingRuntime) -> Self {
        let name = metadata.name.clone().unwrap_or_default();
        Self { key: RuntimeKey::Cluster { name }, metadata, spec: spec.0 }
    }
}

#[cfg(test)]
mod tests {
    use trainjob_api::v1alpha1::train_job::{RuntimeRef, TrainJobSpec};

    use super::*;

    fn job(kind: Option<&str>, group: Option<&str>) -> TrainJob {
        let runtime_ref = RuntimeRef {
            name: "torch".into(),
            kind: kind.map(Into::into),
            api_group: group.map(Into::into),
        };
        let mut job = TrainJob::new("tj", TrainJobSpec { runtime_ref, ..Default::default() });
        job.metadata.namespace = Some("ns".into());
        job
    }

    #[test]
    fn a_runtime_reference_names_one_of_two_kinds() {
        for (kind, group, expected) in [
            (None, None, "ClusterTrainingRuntime torch"),
            (Some("ClusterTrainingRuntime"), None, "ClusterTrainingRuntime torch"),
            (Some("TrainingRuntime"), Some(GROUP), "TrainingRuntime ns/torch"),
        ] {
            assert_eq!(runtime_key(&job(kind, group)).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn any_other_kind_is_unsupported() {
        for (kind, group, expected) in [
            (Some("Runtime"), None, "unsupported runtime: Runtime.trainer.kubeflow.org"),
            (None, Some("example.com"), "unsupported runtime: ClusterTrainingRuntime.example.com"),
            (Some(""), Some(""), "unsupported runtime: ."),
        ] {
            assert_eq!(runtime_key(&job(kind, group)).unwrap_err().to_string(), expected);
        }
    }
}
