//! Who a child belongs to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use trainjob_api::{
    TrainJob,
    v1alpha1::{API_VERSION, TRAIN_JOB_KIND},
};

/// The owner reference that every child of a TrainJob carries.
///
/// It makes the garbage collector remove the child with the job, Kueue leave the child alone, and its
/// UID tells a child of this job from one of a predecessor of the same name.
#[must_use]
pub fn owner_reference(job: &TrainJob) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.into(),
        kind: TRAIN_JOB_KIND.into(),
        name: job.metadata.name.clone().unwrap_or_default(),
        uid: job.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Metadata of the child whose name is that of the TrainJob with `suffix` behind it.
pub(crate) fn child_metadata(job: &TrainJob, suffix: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(format!("{}{suffix}", job.metadata.name.as_deref().unwrap_or_default())),
        namespace: job.metadata.namespace.clone(),
        owner_references: Some(vec![owner_reference(job)]),
        ..ObjectMeta::default()
    }
}
