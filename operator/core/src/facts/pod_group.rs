//! The facts about a `PodGroup`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::owner::controlling_train_job;
use crate::scheduler::PodGroupSpec;

/// The facts about a `PodGroup`.
#[derive(Debug, Clone, PartialEq)]
pub struct PodGroupFacts {
    /// The UID.
    pub uid: String,
    /// The version these facts were read from.
    pub resource_version: String,
    /// UID of the TrainJob that is its controller, if one is.
    pub train_job_uid: Option<String>,
    /// Whether it has a `deletionTimestamp`.
    pub terminating: bool,
    /// What it asks for.
    pub spec: PodGroupSpec,
}

impl PodGroupFacts {
    /// The facts in a stored `PodGroup`.
    #[must_use]
    pub fn of(metadata: &ObjectMeta, spec: PodGroupSpec) -> Self {
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            train_job_uid: controlling_train_job(metadata).map(|owner| owner.uid.clone()),
            terminating: metadata.deletion_timestamp.is_some(),
            spec,
        }
    }
}
