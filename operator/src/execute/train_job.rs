//! TrainJobs: their status, and their removal.

use http::{HeaderValue, header::ACCEPT};
use kube::{
    api::{GetParams, Patch, PatchParams, Preconditions, PropagationPolicy},
    core::PartialObjectMeta,
};
use serde_json::json;
use trainjob_api::{TrainJob, constants::FIELD_MANAGER};
use trainjob_core::{
    action::{StatusWrite, TtlDeletion, WaitingWrite},
    observed::Propagation,
    pass::Reply,
};
use trainjob_engine::{error::RequestError, versions::Source};

use super::{Context, Executor, delete_params, request};

/// Asks for the metadata of an object alone: what is deleted may be a megabyte, and nothing else of it is looked at.
const METADATA: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
);

impl Executor {
    pub(super) async fn write_status(
        &self,
        of: Context<'_>,
        write: &StatusWrite,
    ) -> Result<(), RequestError> {
        let mut status = serde_json::Map::new();
        if let Some(conditions) = &write.conditions {
            status.insert("conditions".into(), json!(conditions));
        }
        if let Some(counts) = &write.jobs_status {
            // In a merge patch, null removes the field.
            let value = if counts.is_empty() { serde_json::Value::Null } else { json!(counts) };
            status.insert("jobsStatus".into(), value);
        }
        let patch = json!({
            "metadata": { "uid": write.uid, "resourceVersion": write.resource_version },
            "status": status,
        });
        let request = request::<TrainJob>(of.job).patch_subresource(
            "status",
            &of.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::Merge(patch),
        );
        let job = self.send::<TrainJob>(of, request).await?;
        self.cache.put_job(job, Source::Reply { lists: of.lists.jobs });
        Ok(())
    }

    pub(super) async fn write_waiting(
        &self,
        of: Context<'_>,
        write: &WaitingWrite,
    ) -> Result<(), RequestError> {
        let request = request::<TrainJob>(of.job).patch_subresource(
            "status",
            &of.job.key.name,
            &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
            &Patch::<()>::Json(write.patch()),
        );
        let job = self.send::<TrainJob>(of, request).await?;
        self.cache.put_job(job, Source::Reply { lists: of.lists.jobs });
        Ok(())
    }

    /// One that is gone is an error: the watch will say so too, and until then nothing is done for it.
    pub(super) async fn read_train_job(&self, of: Context<'_>) -> Result<Reply, RequestError> {
        let name = &of.job.key.name;
        let request = request::<TrainJob>(of.job).get(name, &GetParams::default());
        let job = self.send::<TrainJob>(of, request).await?;
        let uid = job.metadata.uid.clone().unwrap_or_default();
        self.cache.put_job(job, Source::Reply { lists: of.lists.jobs });
        Ok(Reply::TrainJob(uid))
    }

    pub(super) async fn delete_train_job(
        &self,
        of: Context<'_>,
        deletion: &TtlDeletion,
    ) -> Result<(), RequestError> {
        let policy = match deletion.propagation {
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Background => PropagationPolicy::Background,
        };
        let preconditions = Preconditions {
            uid: Some(deletion.uid.clone()),
            resource_version: Some(deletion.resource_version.clone()),
        };
        let params = delete_params(policy, preconditions);
        let key = &of.job.key;
        let mut request = request::<TrainJob>(of.job).delete(&key.name, &params);
        if let Ok(request) = &mut request {
            request.headers_mut().insert(ACCEPT, METADATA);
        }
        let left = self.delete::<PartialObjectMeta<TrainJob>>(of, request).await?;
        self.cache.ttl_deleted(key, &deletion.uid, self.clock.likely().into());
        match left {
            Some(PartialObjectMeta { metadata, .. }) => {
                let version = metadata.resource_version.unwrap_or_default();
                self.cache.deletion_begun(deletion, key, version, of.lists.jobs);
            }
            None => self.cache.forget_job(key, &deletion.uid),
        }
        Ok(())
    }
}
