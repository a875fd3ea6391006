//! Controller owners: how they are, and what fences their deletion in place of an object (`docs/retention.md`, R24 and R25).

use std::sync::Arc;

use http::Request;
use kube::Client;
use serde::Deserialize;
use trainjob_engine::{answer::timed, error::RequestError};
use trainjob_retention_core::{
    facts::{Controller, Reader},
    finished::Definition,
    interner::Interner,
    kind::BuiltIn,
    labels::LabelKeys,
    metadata::Metadata,
    plan::{FoundOwner, OwnerAnswer},
    uid::Uid,
    wish::Wishes,
};

use super::{
    path::{Collection, collection},
    requests::{self, Fence},
};
use crate::cluster_state::Resource;

#[derive(Deserialize)]
struct Bare {
    metadata: Metadata,
}

/// A controller owner as it is now.
pub(super) struct Current {
    /// Where it is.
    pub(super) path: Collection,
    /// What fences its deletion.
    pub(super) fence: Fence,
    /// What follows from it for its object.
    pub(super) answer: OwnerAnswer,
}

/// How the controller owner of an object in this namespace is. One that is in no namespace, such as the Node of a static
/// Pod, is of no kind whose end is known.
pub(crate) async fn ask(
    client: &Client,
    namespace: &str,
    owner: &Controller,
) -> Result<OwnerAnswer, RequestError> {
    let Some(path) = path(client, namespace, owner).await? else {
        return Ok(OwnerAnswer::Found(FoundOwner::default()));
    };
    match get(client, &path, owner).await {
        Ok(text) => answer(&text, owner).map_err(requests::unreadable),
        Err(error) if error.says_absent() => Ok(OwnerAnswer::Gone),
        Err(error) => Err(error),
    }
}

/// Reads the owner that is to be deleted, if it is still that one.
pub(super) async fn read(
    client: &Client,
    namespace: &str,
    owner: &Controller,
) -> Result<Current, RequestError> {
    let in_none = || RequestError::Unbuildable("the owner is in no namespace".into());
    let path = path(client, namespace, owner).await?.ok_or_else(in_none)?;
    let text = get(client, &path, owner).await?;
    let answer = answer(&text, owner).map_err(requests::unreadable)?;
    let Metadata { uid, resource_version, .. } = metadata(&text).map_err(requests::unreadable)?;
    if answer == OwnerAnswer::Gone {
        return Err(RequestError::Unbuildable("the owner is another object by now".into()));
    }
    Ok(Current { path, fence: Fence { uid, resource_version }, answer })
}

fn answer(text: &str, owner: &Controller) -> Result<OwnerAnswer, serde_json::Error> {
    let metadata = metadata(text)?;
    if Uid::from(metadata.uid.as_str()) != owner.uid {
        return Ok(OwnerAnswer::Gone);
    }
    let finished = match built_in(owner) {
        None => None,
        Some(kind) => {
            let definition = Arc::new(Definition::BuiltIn(kind));
            let reader = Reader::new(Some(kind), vec![definition], LabelKeys::default());
            let finished = reader.read(text, &mut Interner::default())?;
            finished.and_then(|finished| finished.facts.finishes.first()?.time.get())
        }
    };
    Ok(OwnerAnswer::Found(FoundOwner {
        finished,
        owned: metadata.owner_references.iter().any(|owner| owner.controller == Some(true)),
        terminating: metadata.deletion_timestamp.is_some(),
        hold: Wishes::read(&metadata.annotations).hold,
    }))
}

fn metadata(text: &str) -> Result<Metadata, serde_json::Error> {
    serde_json::from_str(text).map(|Bare { metadata }| metadata)
}

async fn get(
    client: &Client,
    path: &Collection,
    owner: &Controller,
) -> Result<String, RequestError> {
    let request = Request::get(format!("{path}/{}", owner.name)).body(Vec::new());
    let request = request.map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
    timed(client.request_text(request)).await
}

/// Where the owner is; `None` if its kind is in no namespace.
async fn path(
    client: &Client,
    namespace: &str,
    owner: &Controller,
) -> Result<Option<Collection>, RequestError> {
    let (group, version) = group_and_version(owner);
    let resource = resource(client, owner).await?;
    let path = |it: Resource| collection(group, version, &it.name).in_namespace(namespace);
    Ok(resource.map(path))
}

/// The resource of an owner; `None` if it is in no namespace. The plural name of a kind that is not built in is looked up.
pub(super) async fn resource(
    client: &Client,
    owner: &Controller,
) -> Result<Option<Resource>, RequestError> {
    let (group, version) = group_and_version(owner);
    let named = |name: &str| Resource { group: group.into(), name: name.into() };
    if let Some(kind) = built_in(owner) {
        return Ok(Some(named(plural(kind))));
    }
    let resources = if group.is_empty() {
        timed(client.list_core_api_resources(version)).await?
    } else {
        timed(client.list_api_group_resources(&owner.api_version)).await?
    };
    let is_it = |name: &str, kind: &str| *kind == *owner.kind && !name.contains('/');
    let found = resources.resources.into_iter().find(|it| is_it(&it.name, &it.kind));
    let unknown = || RequestError::Unbuildable("the kind of the owner is not served".into());
    let found = found.ok_or_else(unknown)?;
    Ok(found.namespaced.then(|| named(&found.name)))
}

fn group_and_version(owner: &Controller) -> (&str, &str) {
    owner.api_version.split_once('/').unwrap_or(("", &owner.api_version))
}

fn built_in(owner: &Controller) -> Option<BuiltIn> {
    BuiltIn::of(group_and_version(owner).0, &owner.kind)
}

/// The plural name of a kind.
pub(crate) const fn plural(kind: BuiltIn) -> &'static str {
    match kind {
        BuiltIn::Job => "jobs",
        BuiltIn::Pod => "pods",
        BuiltIn::JobSet => "jobsets",
        BuiltIn::TrainJob => "trainjobs",
        BuiltIn::Workload => "workloads",
        BuiltIn::TrainJobRecord => "trainjobrecords",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::time::Timestamp;
    use trainjob_retention_core::wish::HoldWish;

    use super::*;

    fn owner(kind: &str) -> Controller {
        Controller {
            api_version: "jobset.x-k8s.io/v1alpha2".into(),
            kind: kind.into(),
            name: "s".into(),
            uid: Uid::from("u"),
        }
    }

    fn found(metadata: &Value, status: &Value, kind: &str) -> OwnerAnswer {
        let mut object = json!({"metadata": {"name": "s", "uid": "u"}, "status": status});
        let fields = metadata.as_object().unwrap().clone();
        object["metadata"].as_object_mut().unwrap().extend(fields);
        answer(&object.to_string(), &owner(kind)).unwrap()
    }

    #[test]
    fn an_owner_is_told_as_far_as_its_kind_is_known() {
        let ended = json!({"conditions": [{"type": "Completed", "status": "True",
            "lastTransitionTime": "2026-11-22T06:30:00Z"}]});
        let time = Some(Timestamp(1_795_329_000));
        let nothing = FoundOwner::default();
        let hold = HoldWish::Until(Timestamp(1_795_329_000));
        for (metadata, status, kind, expected) in [
            (json!({}), json!({}), "JobSet", nothing),
            (json!({}), ended.clone(), "JobSet", FoundOwner { finished: time, ..nothing }),
            (json!({}), ended, "JobGroup", nothing),
            (
                json!({"ownerReferences": [{"kind": "A"}, {"kind": "B", "controller": true}]}),
                json!({}),
                "JobSet",
                FoundOwner { owned: true, ..nothing },
            ),
            (json!({"ownerReferences": [{"kind": "A"}]}), json!({}), "JobSet", nothing),
            (
                json!({"deletionTimestamp": "2026-11-22T06:30:00Z"}),
                json!({}),
                "JobSet",
                FoundOwner { terminating: true, ..nothing },
            ),
            (
                json!({"annotations": {"lifecycle.trainjob.dev/hold-until": "2026-11-22T06:30:00Z"}}),
                json!({}),
                "JobSet",
                FoundOwner { hold: Some(hold), ..nothing },
            ),
        ] {
            let found = found(&metadata, &status, kind);
            assert_eq!(found, OwnerAnswer::Found(expected), "{kind} {metadata}");
        }
        assert_eq!(found(&json!({"uid": "other"}), &json!({}), "JobSet"), OwnerAnswer::Gone);
    }
}
