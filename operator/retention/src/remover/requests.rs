//! The only request that changes a target: a fenced DELETE.

use kube::{
    Client,
    api::{DeleteParams, Preconditions, PropagationPolicy},
    core::Request,
};
use trainjob_core::pass::Class;
use trainjob_engine::{
    answer::timed,
    error::{FailureReason, RequestError},
};
use trainjob_retention_core::policy::Propagation;

use super::path::Collection;
use crate::cluster_state::{Deletion, Reply};

/// Which object is deleted, in which version.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    pub(super) uid: String,
    pub(super) resource_version: String,
}

/// Deletes an object, fenced by the UID and the version that the deletion was planned on.
pub(super) async fn delete(
    client: &Client,
    path: &Collection,
    name: &str,
    deletion: &Deletion,
) -> Result<(), RequestError> {
    let fence = Fence {
        uid: deletion.uid.to_string(),
        resource_version: deletion.resource_version.as_ref().to_owned(),
    };
    delete_fenced(client, path, name, fence, deletion.propagation).await
}

/// Deletes an object if it is still that one in that version.
pub(super) async fn delete_fenced(
    client: &Client,
    path: &Collection,
    name: &str,
    fence: Fence,
    propagation: Propagation,
) -> Result<(), RequestError> {
    let propagation = match propagation {
        Propagation::Foreground => PropagationPolicy::Foreground,
        Propagation::Background => PropagationPolicy::Background,
    };
    let preconditions =
        Preconditions { uid: Some(fence.uid), resource_version: Some(fence.resource_version) };
    let params = DeleteParams {
        preconditions: Some(preconditions),
        propagation_policy: Some(propagation),
        ..DeleteParams::default()
    };
    let request = Request::new(path.to_string()).delete(name, &params);
    let request = request.map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
    // The object may come back with the answer. The watch tells, too.
    timed(client.request_text(request)).await.map(drop)
}

/// Whether a request was refused because a right is missing, or because admission denies it.
pub(super) fn is_forbidden(error: &RequestError) -> bool {
    error.reason() == Some(FailureReason::Forbidden)
}

/// What a failure means for the next try (`docs/retention.md`, R34).
pub(super) fn reply(error: &RequestError) -> Reply {
    match error.class() {
        Class::Conflict | Class::Exists => Reply::Conflict,
        Class::Gone => Reply::Missing,
        Class::Throttled(wait) => Reply::Throttled(wait),
        Class::NamespaceGoing | Class::KindUndiscovered | Class::Denied | Class::Transient => {
            Reply::Failed
        }
    }
}
