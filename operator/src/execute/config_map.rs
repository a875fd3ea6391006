//! ConfigMaps.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{GetParams, Preconditions, PropagationPolicy};
use trainjob_api::jobset::JobSetView;
use trainjob_core::pass::Reply;
use trainjob_engine::error::RequestError;

use super::{Context, Executor, delete_params, request};

impl Executor {
    pub(super) async fn read_config_map(
        &self,
        of: Context<'_>,
        name: Option<&str>,
    ) -> Result<Reply, RequestError> {
        let reading = self.read::<ConfigMap>(of, name.unwrap_or_default()).await?;
        Ok(Reply::ConfigMap(Box::new(reading)))
    }

    /// A JobSet that the cache does not know, from a request whose reply was lost, may have Pods that read it. So
    /// nothing is deleted before the API server has said that there is none.
    pub(super) async fn delete_config_map(
        &self,
        of: Context<'_>,
        name: &str,
        (uid, resource_version): (&str, &str),
    ) -> Result<(), RequestError> {
        let look = request::<JobSetView>(of.job).get(&of.job.key.name, &GetParams::default());
        match self.send::<JobSetView>(of, look).await {
            Ok(there) => {
                self.saw_job_set(of, &there);
                return Ok(());
            }
            Err(error) if error.says_absent() => {}
            Err(error) => return Err(error),
        }
        let preconditions = Preconditions {
            uid: Some(uid.into()),
            resource_version: Some(resource_version.into()),
        };
        let params = delete_params(PropagationPolicy::Background, preconditions);
        let request = request::<ConfigMap>(of.job).delete(name, &params);
        self.delete::<ConfigMap>(of, request).await.map(|_| ())
    }
}
