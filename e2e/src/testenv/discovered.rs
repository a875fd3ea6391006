//! Whether the API server has discovered a kind of owner.
//!
//! Its admission plugin `OwnerReferencesPermissionEnforcement` looks for new kinds every 30 seconds, and refuses until
//! then what names an owner of such a kind with `blockOwnerDeletion`, which is what every controller creates. It asks
//! nothing of accounts that may do everything, so what it knows is seen with an account that may not.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::testenv::cluster::Cluster;
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::until::until_ok;

/// What it says of a kind that it does not know.
const UNKNOWN: &str = "cannot find RESTMapping";

/// Whether the API server knows this kind when the account creates something that such an object owns. Nothing is stored.
pub async fn is_discovered(
    cluster: &Cluster,
    (namespace, account): (&str, &str),
    (api_version, kind): (&str, &str),
) -> Result<bool> {
    let client = cluster.service_account_client(namespace, account).await?;
    let api: Api<ConfigMap> = Api::namespaced(client, namespace);
    let owner = json!({
        "apiVersion": api_version, "kind": kind, "name": "owner", "uid": "owner",
        "controller": true, "blockOwnerDeletion": true,
    });
    let metadata = json!({"name": "discovery-probe", "ownerReferences": [owner]});
    let object = serde_json::from_value(json!({"metadata": metadata}))?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match api.create(&dry_run, &object).await {
        Ok(_) => Ok(true),
        // A known kind of which the account may not set finalizers is refused with other words.
        Err(kube::Error::Api(status)) if status.message.contains("blockOwnerDeletion") => {
            Ok(!status.message.contains(UNKNOWN))
        }
        Err(other) => Err(other.into()),
    }
}

/// Waits until it knows the kind.
pub async fn until_discovered(
    cluster: &Cluster,
    account: (&str, &str),
    kind: (&str, &str),
) -> Result<()> {
    until_ok(format!("the API server has discovered {}", kind.1), PATIENCE, || async {
        ensure!(is_discovered(cluster, account, kind).await?, "it refuses what one owns");
        Ok(())
    })
    .await
}
