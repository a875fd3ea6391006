//! Asks the API server which version of a kind it serves.

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::Client;
use trainjob_engine::{answer::timed, error::RequestError};
use trainjob_retention_core::kind::BuiltIn;

use super::{
    Answer,
    absence::{Group, absence},
    candidates,
    kind::Kind,
};

/// The version in which a kind is to be read.
///
/// # Errors
///
/// The API server did not answer, or with anything but what was asked or that there is no such thing.
pub async fn ask(client: &Client, kind: Kind<'_>) -> Result<Answer, RequestError> {
    let absent = |group: &Group| Answer::Absent(absence(kind, group).into());
    let (versions, group_path) = if kind.group.is_empty() {
        // There is one version of the core group.
        (vec!["v1".to_owned()], "/api".to_owned())
    } else {
        let path = format!("/apis/{}", kind.group);
        let Some(group) = found::<APIGroup>(client, &path).await? else {
            return Ok(absent(&Group::Missing));
        };
        let preferred = group.preferred_version.as_ref().map(|version| version.version.as_str());
        let versions = group.versions.iter().map(|version| version.version.as_str());
        let built_in = BuiltIn::of(kind.group, kind.kind);
        let versions: Vec<_> =
            candidates(built_in, preferred, versions).into_iter().map(str::to_owned).collect();
        if let (true, Some(built_in)) = (versions.is_empty(), built_in) {
            return Ok(absent(&Group::Unknown(built_in.versions())));
        }
        (versions, path)
    };
    let mut others = Vec::new();
    for version in versions {
        let path = format!("{group_path}/{version}");
        let Some(list) = found::<APIResourceList>(client, &path).await? else { continue };
        let resources = list.resources.into_iter().map(|resource| (resource.name, resource.kind));
        let resources: Vec<_> = resources.collect();
        if resources.iter().any(|(name, its_kind)| name == kind.resource && its_kind == kind.kind) {
            return Ok(Answer::Served(version.into()));
        }
        others.extend(resources);
    }
    Ok(absent(&Group::Of(others)))
}

/// What is under a path; `None` if there is no such path.
async fn found<T: serde::de::DeserializeOwned>(
    client: &Client,
    path: &str,
) -> Result<Option<T>, RequestError> {
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
    match timed(client.request(request)).await {
        Ok(found) => Ok(Some(found)),
        Err(RequestError::Refused(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
