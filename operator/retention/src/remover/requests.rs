//! The only request that changes a target, a fenced DELETE, and what fences it.

use kube::{
    Client,
    api::{DeleteParams, ListParams, Preconditions, PropagationPolicy},
    core::Request,
};
use serde::Deserialize;
use trainjob_core::pass::Class;
use trainjob_engine::{
    answer::timed,
    error::{FailureReason, RequestError},
};
use trainjob_retention_core::{metadata::Metadata, policy::Propagation};

use super::path::Collection;
use crate::cluster_state::{Deletion, Reply};

/// Which object is deleted, in which version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) uid: String,
    pub(super) resource_version: String,
}

impl Fence {
    /// Of the object that a deletion was planned on.
    pub(super) fn of(deletion: &Deletion) -> Self {
        Self {
            uid: deletion.uid.to_string(),
            resource_version: deletion.resource_version.as_ref().to_owned(),
        }
    }
}

/// Some objects, of which nothing but their metadata matters.
#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

/// What fences the deletion of an object now; `None`: there is none of the name.
///
/// It is asked for by a LIST, because the engine may LIST what it may delete, and need not be allowed to GET it.
pub(super) async fn fence_of(
    client: &Client,
    path: &Collection,
    name: &str,
) -> Result<Option<Fence>, RequestError> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let request = Request::new(path.to_string()).list(&params);
    let request = request.map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
    let text = timed(client.request_text(request)).await?;
    let list: List = serde_json::from_str(&text).map_err(unreadable)?;
    let fence =
        |Item { metadata: Metadata { uid, resource_version, .. } }| Fence { uid, resource_version };
    Ok(list.items.into_iter().next().map(fence))
}

/// Deletes an object, fenced by the UID and the version that the deletion was planned on.
pub(super) async fn delete(
    client: &Client,
    path: &Collection,
    name: &str,
    deletion: &Deletion,
) -> Result<(), RequestError> {
    delete_fenced(client, path, name, Fence::of(deletion), deletion.propagation).await
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

/// The error of an answer that cannot be read.
pub(super) const fn unreadable(error: serde_json::Error) -> RequestError {
    RequestError::BadReply(kube::Error::SerdeError(error))
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
