//! What users are told of an object that was deleted, or was to be (`docs/retention.md`, R52).

use k8s_openapi::api::core::v1::ObjectReference;
use trainjob_core::event::Severity;
use trainjob_engine::{error::RequestError, events::Event};
use trainjob_retention_core::uid::Uid;

use super::served::Served;
use crate::{
    cluster_state::{Deletion, source_name},
    key::Key,
};

/// The longest text of an error in a note, in characters; a note has 1,024 bytes at most.
const LONGEST_ERROR: usize = 200;

/// An object was deleted.
pub(super) fn deleted(key: &Key, served: &Served, deletion: &Deletion) -> Event {
    let what = match &deletion.owner {
        None => "it".to_owned(),
        Some(owner) => format!("its owner {} {}", owner.kind, owner.name),
    };
    let note = format!("{} deletes {what}: {}", deletion.policy, reason(deletion));
    event(key, served, deletion, (Severity::Normal, "RetentionDeleted", note))
}

/// So many Pods of an object were deleted.
pub(super) fn pods_deleted(key: &Key, served: &Served, deletion: &Deletion, count: u32) -> Event {
    let pods = if count == 1 { "Pod" } else { "Pods" };
    let note = format!("{} deletes {count} {pods} of it: {}", deletion.policy, reason(deletion));
    event(key, served, deletion, (Severity::Normal, "RetentionPodsDeleted", note))
}

/// The Pods of an object could not be deleted; `None` where that belongs to normal life.
pub(super) fn pods_failed(
    key: &Key,
    served: &Served,
    deletion: &Deletion,
    error: &RequestError,
) -> Option<Event> {
    failed_to("delete its Pods", (key, served, deletion), error)
}

/// An object could not be deleted; `None` where that belongs to normal life.
pub(super) fn failed(
    key: &Key,
    served: &Served,
    deletion: &Deletion,
    error: &RequestError,
) -> Option<Event> {
    failed_to("delete it", (key, served, deletion), error)
}

fn failed_to(
    what: &str,
    (key, served, deletion): (&Key, &Served, &Deletion),
    error: &RequestError,
) -> Option<Event> {
    error.reason()?;
    let error: String = error.to_string().chars().take(LONGEST_ERROR).collect();
    let note = format!("{} cannot {what} ({}): {error}", deletion.policy, reason(deletion));
    Some(event(key, served, deletion, (Severity::Warning, "DeletionFailed", note)))
}

fn reason(deletion: &Deletion) -> String {
    let Deletion { rule, due, .. } = deletion;
    format!("rule {rule}, due at {} by {}", due.at, source_name(*due))
}

fn event(
    key: &Key,
    served: &Served,
    deletion: &Deletion,
    said: (Severity, &'static str, String),
) -> Event {
    of_object(key, served, &deletion.uid, said)
}

/// An event about the object with this UID.
pub(super) fn of_object(
    key: &Key,
    served: &Served,
    uid: &Uid,
    (severity, reason, note): (Severity, &'static str, String),
) -> Event {
    let version = served.version.as_deref().unwrap_or_default();
    let group = &served.target.api_group;
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let regarding = ObjectReference {
        api_version: Some(api_version),
        kind: Some(served.target.kind.clone()),
        namespace: Some(key.object.namespace.to_string()),
        name: Some(key.object.name.to_string()),
        uid: Some(uid.to_string()),
        ..ObjectReference::default()
    };
    Event { regarding, severity, reason, action: "Delete", note }
}
