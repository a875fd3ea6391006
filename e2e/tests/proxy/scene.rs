//! A proxy, and what a test does through it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::shared::Shared;
use e2e::proxy::{Fault, Injection, Proxy, Scope};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::client::{Connection, Version};

pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A proxy and a namespace.
pub(super) struct Scene {
    pub(super) cluster: Arc<Cluster>,
    pub(super) proxy: Proxy,
    pub(super) namespace: String,
    /// The ConfigMaps of the namespace, as somebody sees them who does not use the proxy.
    pub(super) stored: Api<ConfigMap>,
}

impl Scene {
    pub(super) async fn new(scope: impl FnOnce(&str) -> Scope) -> Result<Self> {
        static SHARED: Shared<Cluster> = Shared::new();
        let cluster = SHARED.get(async || Cluster::start(Options::bare()).await).await?;
        let namespace = cluster.namespace("proxy").await?;
        let proxy = Proxy::start(&cluster, scope(&namespace)).await?;
        let stored = Api::namespaced(cluster.client().await?, &namespace);
        Ok(Self { cluster, proxy, namespace, stored })
    }

    pub(super) async fn whole() -> Result<Self> {
        Self::new(|_| Scope::Cluster).await
    }

    pub(super) async fn connect(&self, version: Version) -> Result<Connection> {
        let kubeconfig = self.proxy.kubeconfig(&self.cluster.kubeconfig())?;
        Connection::open(&self.cluster, &kubeconfig, version).await
    }

    /// The path of the ConfigMaps.
    pub(super) fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// Asks for a ConfigMap through the proxy, as a task.
    pub(super) async fn create(
        &self,
        version: Version,
        name: &str,
    ) -> Result<tokio::task::JoinHandle<Result<u16>>> {
        let (mut connection, path, body) = (self.connect(version).await?, self.path(), named(name));
        Ok(tokio::spawn(async move {
            Ok(connection.call("POST", &path, &body).await?.0.status.as_u16())
        }))
    }

    /// Creates a ConfigMap past the proxy.
    pub(super) async fn create_directly(&self, name: &str) -> Result<()> {
        let object = serde_json::from_value(named(name))?;
        self.stored.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    pub(super) async fn is_stored(&self, name: &str) -> Result<bool> {
        Ok(self.stored.get_opt(name).await?.is_some())
    }

    /// Puts a fault in the way of the first creation.
    pub(super) fn at_creation(&self, fault: Fault) -> Injection {
        self.proxy.inject(|call| call.verb == "create", 1..=1, fault)
    }
}

pub(super) fn named(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}
