//! The retention engine under test: the real binary, with the permissions that its targets need.

use std::ops::Deref;

use anyhow::Result;
use serde_json::json;

use crate::testenv::cluster::Cluster;
use crate::testenv::product::{Granted, Options, Product, grant};
use crate::testenv::workspace;

/// The namespace of the retention engine.
pub const NAMESPACE: &str = "trainjob-retention";
/// The `ServiceAccount` that it runs as.
pub const SERVICE_ACCOUNT: &str = "trainjob-retention";
/// The user that it is.
pub const USER: &str = "system:serviceaccount:trainjob-retention:trainjob-retention";

/// A running retention engine. Dropped, it is asked to stop, and killed if it does not.
#[derive(Debug)]
pub struct Retention(Product);

impl Retention {
    /// Starts a retention engine as its own `ServiceAccount`, with this section `retention` in its configuration.
    pub async fn start(cluster: &Cluster, section: &str) -> Result<Self> {
        let binary = tokio::task::spawn_blocking(workspace::retention).await??;
        let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        let head =
            "apiVersion: config.lifecycle.trainjob.dev/v1alpha1\nkind: RetentionConfiguration";
        let options = Options {
            config_yaml: format!("{head}\nretention: {section}\n"),
            kubeconfig: Some(kubeconfig),
            ..Options::default()
        };
        Ok(Self(Product::start(cluster, "retention", &binary, options)?))
    }
}

impl Deref for Retention {
    type Target = Product;

    fn deref(&self) -> &Product {
        &self.0
    }
}

/// Creates the namespace of the retention engine with its `ServiceAccount`, which may do what it needs for Jobs as a target,
/// whose Pods may go before them, and for TrainJobs (`docs/retention.md`, 9).
pub async fn install_retention_rbac(cluster: &Cluster) -> Result<()> {
    allow_retention(cluster, &["list", "watch", "delete"]).await
}

/// The same, with these verbs for Jobs. It replaces what the engine was allowed before.
pub async fn allow_retention(cluster: &Cluster, for_jobs: &[&str]) -> Result<()> {
    let policies = ["retentionpolicies", "clusterretentionpolicies"];
    let statuses = policies.map(|policy| format!("{policy}/status"));
    let rules = json!([
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": for_jobs},
        {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"],
            "verbs": ["list", "watch", "delete"]},
        {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["lifecycle.trainjob.dev"], "resources": policies, "verbs": ["list", "watch"]},
        {"apiGroups": ["lifecycle.trainjob.dev"], "resources": statuses, "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    ]);
    let granted = Granted { cluster: serde_json::from_value(rules)?, ..Granted::default() };
    grant(cluster, NAMESPACE, SERVICE_ACCOUNT, &granted).await
}
