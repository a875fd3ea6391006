//! What the accounting program needs in a cluster.

use anyhow::Result;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecord;

use crate::testenv::apply::apply;
use crate::testenv::chart::install_accounting_crds;
use crate::testenv::cluster::Cluster;
use crate::testenv::fixtures::SYSTEM;
use crate::testenv::operator::SERVICE_ACCOUNT as OPERATOR;
use crate::testenv::product::{Granted, Rules, grant, rules};

/// The namespace of the accounting program.
pub const NAMESPACE: &str = "trainjob-accounting";
/// The `ServiceAccount` that it runs as.
pub const SERVICE_ACCOUNT: &str = "trainjob-accounting";

const RULES: Rules = Rules {
    cluster: "accounting-cluster-rules.yaml",
    namespace: "accounting-namespace-rules.yaml",
};

/// Installs the definition of records, the account of the program with the rights that the chart gives it, and the operator's
/// right to watch its Lease.
pub async fn install_accounting(cluster: &Cluster) -> Result<()> {
    let client = cluster.client().await?;
    install_accounting_crds(&client).await?;
    records_can_be_created(&client).await?;
    RULES.install(cluster, NAMESPACE, SERVICE_ACCOUNT).await?;
    let (rbac, name) = ("rbac.authorization.k8s.io", "operator-accounting");
    let watch = vec![
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": name},
            "rules": rules("operator-accounting-rules.yaml")?,
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": OPERATOR, "namespace": SYSTEM}],
        }),
    ];
    apply(&client, NAMESPACE, watch).await?;
    Ok(())
}

/// Gives the program the rights that the chart gives it, but for those on this resource.
pub async fn grant_all_but(cluster: &Cluster, resource: Option<&str>) -> Result<()> {
    let mut granted = RULES.read()?;
    for rule in &mut granted.cluster {
        rule.resources.iter_mut().for_each(|all| all.retain(|it| Some(it.as_str()) != resource));
    }
    granted.cluster.retain(|rule| rule.resources.as_ref().is_none_or(|all| !all.is_empty()));
    grant(cluster, NAMESPACE, SERVICE_ACCOUNT, &granted).await
}

/// An API server keeps creations of a kind waiting for the first two seconds after it knows it.
async fn records_can_be_created(client: &Client) -> Result<()> {
    let records: Api<TrainJobRecord> = Api::namespaced(client.clone(), "default");
    let record = serde_json::from_value(json!({
        "apiVersion": "lifecycle.trainjob.dev/v1alpha1", "kind": "TrainJobRecord",
        "metadata": {"name": "nobody"}, "spec": {"trainJob": {"name": "nobody", "uid": "none"}},
    }))?;
    let only_tried = PostParams { dry_run: true, ..PostParams::default() };
    records.create(&only_tried, &record).await?;
    Ok(())
}

/// Creates a namespace with a `ServiceAccount` of the program's name, which may patch Pods as the program does, and look for
/// ConfigMaps in its namespace.
pub async fn install_raw_client(cluster: &Cluster, namespace: &str) -> Result<()> {
    let rule = |resource: &str, verb: &str| json!([{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]);
    let granted = Granted {
        cluster: serde_json::from_value(rule("pods", "patch"))?,
        namespace: serde_json::from_value(rule("configmaps", "get"))?,
    };
    grant(cluster, namespace, SERVICE_ACCOUNT, &granted).await
}
