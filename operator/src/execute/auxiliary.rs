//! The objects that a JobSet needs beside it: Secrets and ConfigMaps.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{GetParams, ObjectMeta, PostParams, Preconditions, PropagationPolicy};
use trainjob_api::jobset::JobSetView;
use trainjob_core::{
    facts::controlling_train_job,
    observed::{Reading, Taken},
    runtime::SecretClaim,
};

use super::{Executor, Pass, create, delete_params, post_params, request};
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
                let name = claim.metadata.name.as_deref().unwrap_or_default();
                self.is_taken(pass, foreign("Secret", name));
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

    /// One that is there is the job's own if its owner says so. It is not changed, so it must also say what the
    /// job is made from now.
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
                self.is_taken(pass, if own { outdated(there) } else { foreign("ConfigMap", name) });
                Err(error)
            }
            other => other.map(|_| ()),
        }
    }

    /// A JobSet that the cache does not know, from a request whose reply was lost, may have Pods that read it. So
    /// nothing is deleted before the API server has said that there is none.
    pub(super) async fn delete_config_map(
        &self,
        pass: Pass<'_>,
        name: &str,
        (uid, resource_version): (&str, &str),
    ) -> Result<(), RequestError> {
        // Whatever becomes of it, what was read of it is old then.
        self.remember(pass.job, |readings| readings.taken = None);
        let look = request::<JobSetView>(pass.job).get(&pass.job.key.name, &GetParams::default());
        match self.send::<JobSetView>(pass, look).await {
            Ok(there) => {
                self.saw_job_set(pass, &there);
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
        let request = request::<ConfigMap>(pass.job).delete(name, &params);
        self.delete::<ConfigMap>(pass, request).await.map(|_| ())
    }

    fn is_taken(&self, pass: Pass<'_>, taken: Taken) {
        self.remember(pass.job, |readings| readings.taken = Some(taken));
    }
}

fn foreign(kind: &'static str, name: &str) -> Taken {
    Taken::Foreign { kind, name: name.to_owned() }
}

fn outdated(config_map: ConfigMap) -> Taken {
    let ObjectMeta { name, uid, resource_version, deletion_timestamp, .. } = config_map.metadata;
    let name = name.unwrap_or_default();
    match deletion_timestamp {
        Some(_) => Taken::Terminating { name },
        None => Taken::Outdated {
            name,
            uid: uid.unwrap_or_default(),
            resource_version: resource_version.unwrap_or_default(),
        },
    }
}

fn is_own(pass: Pass<'_>, config_map: &ConfigMap) -> bool {
    let owner = controlling_train_job(&config_map.metadata);
    owner.is_some_and(|owner| owner.uid == pass.job.uid)
}
