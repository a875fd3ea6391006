//! What an object is that has the name of one to be created.
//!
//! A creation that is answered with AlreadyExists may have met the job's own object, from a request whose reply was
//! lost or from before a restart, or somebody else's. Nothing is adopted by its name: the owner's UID tells.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use super::{call::Reply, memory::JobMemory};
use crate::{
    action::Action,
    facts::controlling_train_job,
    observed::{NameConflict, Reading},
};

/// What it is.
pub(super) enum Existing {
    /// The job's own, and as it should be.
    AsWanted,
    /// Known now: the job is planned again.
    Noted,
    /// A JobSet of somebody else.
    Foreign,
}

/// Whether the object that is in the way has to be read.
pub(super) const fn must_inspect(action: &Action) -> bool {
    matches!(
        action,
        Action::CreateSnapshot(_)
            | Action::CreateConfigMap(_)
            | Action::CreatePodGroup(_)
            | Action::CreateJobSet { .. }
            | Action::ProbeSecret { witness: Some(_), .. }
    )
}

/// What an object is that is in the way and is not read.
pub(super) fn exists(action: &Action, memory: &mut JobMemory) -> Existing {
    match action {
        // Its name was free when the snapshot was created.
        Action::CreateSecret(_) => Existing::AsWanted,
        Action::ProbeSecret { claim, .. } => {
            name_is_taken(memory, foreign("Secret", claim.metadata.name.as_deref()))
        }
        _ => Existing::Noted,
    }
}

/// What an object is that is in the way and was read.
pub(super) fn inspected(
    action: &Action,
    uid: &str,
    reply: Reply,
    memory: &mut JobMemory,
) -> Existing {
    match (action, reply) {
        // It is judged by its owner when the job is planned again.
        (Action::CreateSnapshot(_), Reply::ConfigMap(snapshot)) => {
            memory.readings.snapshot = *snapshot;
            Existing::Noted
        }
        (Action::ProbeSecret { claim, .. }, Reply::ConfigMap(witness)) => match *witness {
            Reading::Found(witness) if is_own(&witness, uid) => Existing::AsWanted,
            _ => name_is_taken(memory, foreign("Secret", claim.metadata.name.as_deref())),
        },
        // It is not changed, so it must also say what the job is made from now.
        (Action::CreateConfigMap(wanted), Reply::ConfigMap(there)) => match *there {
            Reading::Found(there) if is_own(&there, uid) && there.data == wanted.data => {
                Existing::AsWanted
            }
            Reading::Found(there) if is_own(&there, uid) => name_is_taken(memory, outdated(there)),
            Reading::Found(_) => {
                name_is_taken(memory, foreign("ConfigMap", wanted.metadata.name.as_deref()))
            }
            Reading::Absent | Reading::NotRead => Existing::Noted,
        },
        // With ours, from a request whose reply was lost, the job is planned again: it may have been made from what
        // the job said then. Any other keeps the job waiting.
        (Action::CreateJobSet { .. }, Reply::JobSetOfName(Some(there)))
            if there.train_job_uid.as_deref() != Some(uid) =>
        {
            Existing::Foreign
        }
        _ => Existing::Noted,
    }
}

fn name_is_taken(memory: &mut JobMemory, by: NameConflict) -> Existing {
    memory.readings.name_conflict = Some(by);
    Existing::Noted
}

fn foreign(kind: &'static str, name: Option<&str>) -> NameConflict {
    NameConflict::Foreign { kind, name: name.unwrap_or_default().to_owned() }
}

fn outdated(config_map: ConfigMap) -> NameConflict {
    let ObjectMeta { name, uid, resource_version, deletion_timestamp, .. } = config_map.metadata;
    let name = name.unwrap_or_default();
    match deletion_timestamp {
        Some(_) => NameConflict::Terminating { name },
        None => NameConflict::Outdated {
            name,
            uid: uid.unwrap_or_default(),
            resource_version: resource_version.unwrap_or_default(),
        },
    }
}

fn is_own(config_map: &ConfigMap, uid: &str) -> bool {
    controlling_train_job(&config_map.metadata).is_some_and(|owner| owner.uid == uid)
}
