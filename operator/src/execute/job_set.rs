//! JobSets.

use kube::api::{GetParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use serde_json::json;
use trainjob_api::{JobSet, constants::FIELD_MANAGER, jobset::JobSetView};
use trainjob_core::{
    facts::{JobSetFacts, ObjectKey},
    observed::{ReadJobSet, Reading},
    pass::Reply,
    text::Text,
};
use trainjob_engine::{error::RequestError, versions::Source};

use super::{Context, Executor, delete_params, post_params, request};

impl Executor {
    /// An older JobSet definition lacks some fields. The API server is asked to refuse them, so that the user is told,
    /// instead of dropping them.
    pub(super) async fn create_job_set(
        &self,
        of: Context<'_>,
        job_set: &Text<JobSet>,
    ) -> Result<(), RequestError> {
        let data = job_set.json().as_bytes().to_vec();
        let request = request::<JobSet>(of.job).create(&post_params(), data);
        let request = strict(request.map_err(kube::Error::BuildRequest)?)?;
        let created = self.send::<JobSetView>(of, Ok(request)).await?;
        self.saw_job_set(of, &created);
        Ok(())
    }

    pub(super) async fn read_job_set_of_name(
        &self,
        of: Context<'_>,
    ) -> Result<Reply, RequestError> {
        let there = match self.read::<JobSetView>(of, &of.job.key.name).await? {
            Reading::Found(there) => Some(Box::new(self.saw_job_set(of, &there))),
            Reading::Absent | Reading::NotRead => None,
        };
        Ok(Reply::JobSetOfName(there))
    }

    pub(super) async fn read_job_set(&self, of: Context<'_>) -> Result<Reply, RequestError> {
        let name = &of.job.key.name;
        let request = request::<JobSet>(of.job).get(name, &GetParams::default());
        let job_set = self.send::<JobSet>(of, request).await?;
        Ok(Reply::JobSet(ReadJobSet::of(&job_set).map_err(kube::Error::SerdeError)?))
    }

    pub(super) async fn update_job_set(
        &self,
        of: Context<'_>,
        patch: &Text<json_patch::Patch>,
    ) -> Result<(), RequestError> {
        let patch = patch.read().map_err(kube::Error::SerdeError)?;
        let request = request::<JobSet>(of.job).patch(
            &of.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::<()>::Json(patch),
        );
        let updated: JobSetView = self.send(of, request).await?;
        self.saw_job_set(of, &updated);
        Ok(())
    }

    pub(super) async fn suspend_job_set(
        &self,
        of: Context<'_>,
        uid: &str,
        resource_version: &str,
        suspend: bool,
    ) -> Result<(), RequestError> {
        let patch = json!({
            "metadata": { "uid": uid, "resourceVersion": resource_version },
            "spec": { "suspend": suspend },
        });
        let request = request::<JobSet>(of.job).patch(
            &of.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::Merge(patch),
        );
        let updated: JobSetView = self.send(of, request).await?;
        self.saw_job_set(of, &updated);
        Ok(())
    }

    /// In the foreground: the JobSet normally stays until its Jobs and Pods are gone.
    pub(super) async fn delete_job_set(
        &self,
        of: Context<'_>,
        uid: &str,
        resource_version: Option<&str>,
    ) -> Result<(), RequestError> {
        let preconditions = Preconditions {
            uid: Some(uid.into()),
            resource_version: resource_version.map(Into::into),
        };
        let params = delete_params(PropagationPolicy::Foreground, preconditions);
        let request = request::<JobSet>(of.job).delete(&of.job.key.name, &params);
        match self.delete::<JobSetView>(of, request).await? {
            Some(terminating) => {
                self.saw_job_set(of, &terminating);
            }
            None => self.cache.forget_job_set(&of.job.key, uid),
        }
        Ok(())
    }

    pub(super) fn saw_job_set(&self, of: Context<'_>, job_set: &JobSetView) -> JobSetFacts {
        let (key, facts) = (ObjectKey::of(&job_set.metadata), JobSetFacts::of(job_set));
        let source = Source::Reply { lists: of.lists.job_sets };
        self.cache.put_job_set(&key, &facts, source);
        facts
    }
}

/// Asks the API server to refuse unknown fields instead of dropping them. `PostParams` has no such setting.
fn strict(mut request: http::Request<Vec<u8>>) -> Result<http::Request<Vec<u8>>, RequestError> {
    let uri = request.uri();
    let before = if uri.query().is_some() { '&' } else { '?' };
    let uri = format!("{uri}{before}fieldValidation=Strict").parse::<http::Uri>();
    let build = kube::core::request::Error::BuildRequest;
    *request.uri_mut() = uri.map_err(|error| kube::Error::BuildRequest(build(error.into())))?;
    Ok(request)
}
