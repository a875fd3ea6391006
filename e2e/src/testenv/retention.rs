//! The retention engine under test: the real binary, with the permissions that its targets need.

use std::ops::Deref;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

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
        let kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        Self::start_as(cluster, section, kubeconfig, Vec::new()).await
    }

    /// The same with these credentials, and these environment variables.
    pub async fn start_as(
        cluster: &Cluster,
        section: &str,
        kubeconfig: PathBuf,
        env: Vec<(String, String)>,
    ) -> Result<Self> {
        let binary = tokio::task::spawn_blocking(workspace::retention).await??;
        let head =
            "apiVersion: config.lifecycle.trainjob.dev/v1alpha1\nkind: RetentionConfiguration";
        let options = Options {
            config_yaml: format!("{head}\nretention: {section}\n"),
            kubeconfig: Some(kubeconfig),
            env,
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
    let mut rules = for_targets(&[("batch", "jobs")], for_jobs);
    rules.extend(for_targets(
        &[("trainer.kubeflow.org", "trainjobs")],
        &["list", "watch", "delete"],
    ));
    rules.extend(for_targets(&[("jobset.x-k8s.io", "jobsets")], &["get"]));
    allow(cluster, rules).await
}

/// The same, for these kinds as targets, and as owners: group and plural. It replaces what the engine was allowed before.
pub async fn allow_retention_of(cluster: &Cluster, targets: &[(&str, &str)]) -> Result<()> {
    allow(cluster, for_targets(targets, &["get", "list", "watch", "delete"])).await
}

/// Creates a namespace with a `ServiceAccount` of the engine's name, which may do the same for these kinds, and look for
/// ConfigMaps in its namespace.
pub async fn install_raw_client(
    cluster: &Cluster,
    namespace: &str,
    targets: &[(&str, &str)],
) -> Result<()> {
    let own = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let rules = for_targets(targets, &["get", "list", "watch", "delete"]);
    let granted = Granted {
        cluster: serde_json::from_value(rules.into())?,
        namespace: serde_json::from_value(own)?,
    };
    grant(cluster, namespace, SERVICE_ACCOUNT, &granted).await
}

async fn allow(cluster: &Cluster, mut rules: Vec<Value>) -> Result<()> {
    let policies = ["retentionpolicies", "clusterretentionpolicies"];
    let statuses = policies.map(|policy| format!("{policy}/status"));
    rules.extend([
        // Of Jobs whose Pods go before them.
        json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": ["lifecycle.trainjob.dev"], "resources": policies, "verbs": ["list", "watch"]}),
        json!({"apiGroups": ["lifecycle.trainjob.dev"], "resources": statuses, "verbs": ["patch"]}),
        json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}),
    ]);
    let granted = Granted { cluster: serde_json::from_value(rules.into())?, ..Granted::default() };
    grant(cluster, NAMESPACE, SERVICE_ACCOUNT, &granted).await
}

fn for_targets(targets: &[(&str, &str)], verbs: &[&str]) -> Vec<Value> {
    let rule = |(group, resource): &(&str, &str)| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    targets.iter().map(rule).collect()
}
