//! Runtimes that made room for others.

use kube::{Resource, api::GetParams, core::Request};
use serde::de::DeserializeOwned;
use trainjob_api::{ClusterTrainingRuntime, TrainingRuntime};
use trainjob_core::build::{Runtime, RuntimeKey};
use trainjob_engine::error::RequestError;

use super::{Context, Executor};

impl Executor {
    /// One that is gone is an error: the watch will say so too, and until then nothing is done for the job.
    pub(super) async fn read_runtime(
        &self,
        of: Context<'_>,
        key: &RuntimeKey,
    ) -> Result<(), RequestError> {
        let runtime = match key {
            RuntimeKey::Cluster { name } => {
                self.get_runtime::<ClusterTrainingRuntime>(of, None, name).await?
            }
            RuntimeKey::Namespaced { namespace, name } => {
                self.get_runtime::<TrainingRuntime>(of, Some(namespace), name).await?
            }
        };
        self.cache.runtime_read(runtime);
        Ok(())
    }

    async fn get_runtime<K>(
        &self,
        of: Context<'_>,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Runtime, RequestError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Into<Runtime> + Send + 'static,
    {
        let request = Request::new(K::url_path(&(), namespace)).get(name, &GetParams::default());
        Ok(self.send::<K>(of, request).await?.into())
    }
}
