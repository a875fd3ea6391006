//! Asks the API server which version of a kind it serves.

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::Client;
use trainjob_engine::{answer::timed, error::RequestError};
use trainjob_retention_core::kind::BuiltIn;

use super::{Answer, candidates};

/// A kind as the API server knows it.
#[derive(Debug, Clone, Copy)]
pub struct Kind<'a> {
    /// Its group; empty for the core group.
    pub group: &'a str,
    /// Its name.
    pub kind: &'a str,
    /// Its plural name.
    pub resource: &'a str,
}

/// The version in which a kind is to be read.
///
/// # Errors
///
/// The API server did not answer, or with anything but what was asked or that there is no such thing.
pub async fn ask(client: &Client, kind: Kind<'_>) -> Result<Answer, RequestError> {
    if kind.group.is_empty() {
        // There is one version of the core group, and nobody can remove it.
        return Ok(Answer::Served("v1".into()));
    }
    let Some(group) = found::<APIGroup>(client, &format!("/apis/{}", kind.group)).await? else {
        return Ok(Answer::Absent);
    };
    let preferred = group.preferred_version.as_ref().map(|version| version.version.as_str());
    let versions = group.versions.iter().map(|version| version.version.as_str());
    for version in candidates(BuiltIn::of(kind.group, kind.kind), preferred, versions) {
        let path = format!("/apis/{}/{version}", kind.group);
        let Some(resources) = found::<APIResourceList>(client, &path).await? else { continue };
        let is_it = |name: &str, its_kind: &str| name == kind.resource && its_kind == kind.kind;
        if resources.resources.iter().any(|resource| is_it(&resource.name, &resource.kind)) {
            return Ok(Answer::Served(version.into()));
        }
    }
    Ok(Answer::Absent)
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
