//! Defaults and maxima: who sets them, and that nobody escapes them.

use anyhow::{Result, ensure};
use e2e::answer::ask;
use e2e::apply::apply;
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::{PATIENCE, World, runtime, train_job};
use e2e::until::until_ok;
use e2e::webhook::{Webhook, WebhookOptions};
use http::Method;
use serde_json::{Value, json};

use super::{JSON, MERGE, author, create, forbidden};

const TTL: &str = "ttlSecondsAfterFinished";
const DEADLINE: &str = "activeDeadlineSeconds";
const CONFIGURATION: &str = "
lifecycle:
  maximumTTLSecondsAfterFinished: 100
  maximumActiveDeadlineSeconds: 1000
";

#[tokio::test]
async fn an_administrator_of_a_namespace_may_not_change_its_limits() -> Result<()> {
    World::shared()
        .await?
        .test("owner", async |tenant| {
            let (cluster, namespace) = (&tenant.world.cluster, &*tenant.namespace);
            let group = "rbac.authorization.k8s.io";
            let name = "owner";
            let account = json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name},
            });
            let binding = json!({
                "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "admin"},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            });
            apply(&tenant.client, namespace, vec![account, binding]).await?;
            let owner = cluster.service_account_client(namespace, name).await?;
            let one = format!("/api/v1/namespaces/{namespace}");
            until_ok("the role is in force", PATIENCE, || async {
                let read = ask(&owner, Method::GET, &one, JSON, &Value::Null).await?;
                ensure!(read.code == 200, "{read:?}");
                Ok(())
            })
            .await?;
            let key = "lifecycle.trainjob.dev/maximum-ttl-seconds-after-finished";
            let change = json!({"metadata": {"annotations": {key: "2147483647"}}});
            let answer = ask(&owner, Method::PATCH, &one, MERGE, &change).await?;
            forbidden(&answer, "cannot patch resource \"namespaces\"")
        })
        .await
}

/// Also where the namespace has higher ones, by any means that a user has.
#[tokio::test]
async fn maxima_of_the_cluster_hold_whatever_a_namespace_and_its_users_say() -> Result<()> {
    let cluster = Cluster::start(Options { crds: true, ..Options::bare() }).await?;
    let client = cluster.client().await?;
    let user = author(&cluster, "generous").await?;
    let prefix = "lifecycle.trainjob.dev";
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "generous", "annotations": {
            format!("{prefix}/default-ttl-seconds-after-finished"): "500",
            format!("{prefix}/maximum-ttl-seconds-after-finished"): "5000",
            format!("{prefix}/maximum-active-deadline-seconds"): "50000",
        }},
    });
    apply(&client, "default", vec![namespace, runtime("plain", &json!({}), 3, None)]).await?;
    let options =
        WebhookOptions { config_yaml: CONFIGURATION.to_owned(), ..WebhookOptions::default() };
    let webhook = Webhook::start(&cluster, options).await?;
    webhook.wait_ready().await?;
    webhook.wait_asked(&client).await?;

    let most = "expected at most 100, the maximum of the cluster (setting \
                lifecycle.maximumTTLSecondsAfterFinished)";
    let longest = "expected at most 1000, the maximum of the cluster (setting \
                   lifecycle.maximumActiveDeadlineSeconds)";
    for (spec, why) in [
        (json!({TTL: 101}), most),
        (json!({DEADLINE: 1001}), longest),
        // Neither by waiting,
        (json!({"suspend": true}), longest),
        // nor by leaving the job to nobody.
        (json!({TTL: 101, "managedBy": "kueue.x-k8s.io/multikueue"}), most),
    ] {
        let answer = create(&user, "generous", &train_job("job", "plain", &spec)).await?;
        forbidden(&answer, why)?;
    }
    let made = create(&user, "generous", &train_job("job", "plain", &json!({}))).await?;
    let spec = &made.object["spec"];
    ensure!(spec[TTL] == 100 && spec[DEADLINE] == 1000, "{made:?}");
    let warning = "spec.ttlSecondsAfterFinished is set to 100, the maximum of the cluster (setting \
                   lifecycle.maximumTTLSecondsAfterFinished); the default of the namespace \"generous\" \
                   (annotation lifecycle.trainjob.dev/default-ttl-seconds-after-finished) is 500";
    ensure!(made.warnings.contains(&warning.to_owned()), "{:?}", made.warnings);
    Ok(())
}
