//! What tests do with a cluster besides talking to it: namespaces, identities, manifests.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, DynamicObject, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};

use crate::testenv::apply::apply;
use crate::testenv::cluster::Cluster;
use crate::testenv::credentials::client;
use crate::testenv::until::until_ok;
use crate::testenv::yaml;

/// Longer than any test.
const TOKEN_SECONDS: i64 = 24 * 60 * 60;

impl Cluster {
    /// Applies a YAML stream of objects of any kind, by server-side apply, in its order. Objects of
    /// a namespaced kind that name no namespace go to `namespace`.
    pub async fn apply_yaml(&self, namespace: &str, text: &str) -> Result<Vec<DynamicObject>> {
        apply(&self.client().await?, namespace, yaml::documents(text)?).await
    }

    /// Creates a namespace whose name begins with `prefix` and was never used before, and waits
    /// until Pods can be created in it.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let client = self.client().await?;
        let metadata =
            ObjectMeta { generate_name: Some(format!("{prefix}-")), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let api: Api<Namespace> = Api::all(client.clone());
        let name = api.create(&PostParams::default(), &namespace).await?.name_any();
        if self.has_controllers() {
            // A Job whose first Pod is refused for want of this tries again much later.
            let accounts: Api<ServiceAccount> = Api::namespaced(client, &name);
            let what = format!("namespace {name} has its ServiceAccount");
            let patience = Duration::from_secs(30);
            until_ok(what, patience, || async { Ok(accounts.get("default").await?) }).await?;
        }
        Ok(name)
    }

    /// Writes a kubeconfig with a token of a `ServiceAccount`, which must exist.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let spec =
            TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..Default::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let answer = answer.with_context(|| format!("no token for {namespace}/{name}"))?;
        let token = answer.status.and_then(|status| status.token).context("an empty token")?;
        self.credentials().write_kubeconfig(&format!("{namespace}-{name}"), &token)
    }

    /// A client that acts as a `ServiceAccount`, which must exist.
    pub async fn service_account_client(&self, namespace: &str, name: &str) -> Result<Client> {
        client(&self.service_account_kubeconfig(namespace, name).await?).await
    }
}
