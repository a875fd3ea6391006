//! Secrets, which are only ever created.

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use trainjob_core::build::SecretClaim;
use trainjob_engine::error::RequestError;

use super::{Context, Executor, create, post_params, request};
use crate::secrets;

impl Executor {
    /// Only a creation tells whether a name is free, where nothing may be read.
    pub(super) async fn probe_secret(
        &self,
        of: Context<'_>,
        claim: &SecretClaim,
    ) -> Result<(), RequestError> {
        let probe = Secret { metadata: claim.metadata.clone(), ..Secret::default() };
        let params = PostParams { dry_run: true, ..post_params() };
        let request = create(&request::<Secret>(of.job), &params, &probe)?;
        self.send::<Secret>(of, Ok(request)).await.map(|_| ())
    }

    pub(super) async fn create_secret(
        &self,
        of: Context<'_>,
        claim: &SecretClaim,
    ) -> Result<(), RequestError> {
        let secret =
            secrets::fill(claim).map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
        self.create(of, &secret).await.map(|_| ())
    }
}
