//! The objects that a JobSet needs beside it: Secrets and ConfigMaps.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use trainjob_core::{
    facts::controlling_train_job,
    observed::{Reading, Taken},
    runtime::SecretClaim,
};

use super::{Executor, Pass, create, post_params, request};
use crate::{
    error::{Class, RequestError},
    secrets,
};

impl Executor {
    /// Only a creation tells whether a name is free, where nothing may be read.
    pub(super) async fn probe_secret(
        &self,
        pass: Pass<'_>,
        claim: &SecretClaim,
        witness: Option<&str>,
    ) -> Result<(), RequestError> {
        let probe = Secret { metadata: claim.metadata.clone(), ..Secret::default() };
        let params = PostParams { dry_run: true, ..post_params() };
        let request = create(&request::<Secret>(pass.job), &params, &probe)?;
        match self.send::<Secret>(pass, Ok(request)).await {
            Err(error) if error.class() == Class::Exists => {
                if let Some(witness) = witness
                    && let Reading::Found(it) = self.read::<ConfigMap>(pass, witness).await?
                    && is_own(pass, &it)
                {
                    return Ok(());
                }
                self.is_taken(pass, false, "Secret", claim.metadata.name.as_deref());
                Err(error)
            }
            other => other.map(|_| ()),
        }
    }

    /// One that is there is the job's own.
    pub(super) async fn create_secret(
        &self,
        pass: Pass<'_>,
        claim: &SecretClaim,
    ) -> Result<(), RequestError> {
        let secret = secrets::fill(claim).map_err(RequestError::Keys)?;
        let request = create(&request::<Secret>(pass.job), &post_params(), &secret)?;
        match self.send::<Secret>(pass, Ok(request)).await {
            Err(error) if error.class() == Class::Exists => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// One that is there is the job's own if its owner says so. It cannot be changed, so it must also say what
    /// the job is made from now.
    pub(super) async fn create_config_map(
        &self,
        pass: Pass<'_>,
        config_map: &ConfigMap,
    ) -> Result<(), RequestError> {
        let request = create(&request::<ConfigMap>(pass.job), &post_params(), config_map)?;
        match self.send::<ConfigMap>(pass, Ok(request)).await {
            Err(error) if error.class() == Class::Exists => {
                let name = config_map.metadata.name.as_deref().unwrap_or_default();
                let Reading::Found(there) = self.read::<ConfigMap>(pass, name).await? else {
                    return Err(error);
                };
                let own = is_own(pass, &there);
                if own && there.data == config_map.data {
                    return Ok(());
                }
                self.is_taken(pass, own, "ConfigMap", Some(name));
                Err(error)
            }
            other => other.map(|_| ()),
        }
    }

    fn is_taken(&self, pass: Pass<'_>, outdated: bool, kind: &'static str, name: Option<&str>) {
        let taken = Taken { outdated, kind, name: name.unwrap_or_default().to_owned() };
        self.remember(pass.job, |readings| readings.taken = Some(taken));
    }
}

fn is_own(pass: Pass<'_>, config_map: &ConfigMap) -> bool {
    let owner = controlling_train_job(&config_map.metadata);
    owner.is_some_and(|owner| owner.uid == pass.job.uid)
}
