//! The label of a copy that MultiKueue has made, by which a TrainJob would escape TTL, defaults and maxima.

use anyhow::{Result, ensure};
use e2e::answer::{Answer, ask};
use e2e::fixtures::{PATIENCE, RUNS, World, train_job};
use e2e::kueue::protect_origin;
use e2e::rbac::account;
use e2e::until::until_ok;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use super::{APPLY, JSON, MERGE, author, create, forbidden, grants, path};

const LABEL: &str = "kueue.x-k8s.io/multikueue-origin";
const WHY: &str = "may not set, change or remove the label kueue.x-k8s.io/multikueue-origin";

fn labelled(name: &str) -> Value {
    let mut job = train_job(name, RUNS, &json!({"suspend": true}));
    job["metadata"]["labels"] = json!({LABEL: "manager"});
    job
}

/// Somebody changes the label of a TrainJob.
async fn relabel(user: &Client, namespace: &str, name: &str, value: Value) -> Result<Answer> {
    let change = json!({"metadata": {"labels": {LABEL: value}}});
    ask(user, Method::PATCH, &path(namespace, &format!("/{name}")), MERGE, &change).await
}

#[tokio::test]
async fn nobody_but_kueue_and_administrators_sets_the_label_of_multikueue() -> Result<()> {
    World::shared()
        .await?
        .test("label", async |tenant| {
            let (cluster, namespace) = (&tenant.world.cluster, &*tenant.namespace);
            protect_origin(cluster, &[]).await?;
            let user = author(cluster, namespace).await?;
            let rights = grants(true, &["create", "get", "patch"], "trainjobs");
            account(cluster, "kueue-system", "multikueue-sa", &rights).await?;
            let kueue = cluster.service_account_client("kueue-system", "multikueue-sa").await?;

            until_ok("the policy is in force", PATIENCE, || async {
                let dry = format!("{}?dryRun=All", path(namespace, ""));
                let answer = ask(&user, Method::POST, &dry, JSON, &labelled("copy")).await?;
                forbidden(&answer, WHY)
            })
            .await?;
            forbidden(&create(&user, namespace, &labelled("mine")).await?, WHY)?;
            let apply = format!("{}?fieldManager=user", path(namespace, "/mine"));
            let applied = ask(&user, Method::PATCH, &apply, APPLY, &labelled("mine")).await?;
            forbidden(&applied, WHY)?;

            // Without it all is as usual, and it does not come later.
            let plain = train_job("plain", RUNS, &json!({"suspend": true}));
            let made = create(&user, namespace, &plain).await?;
            ensure!(made.code == 201, "{made:?}");
            forbidden(&relabel(&user, namespace, "plain", json!("manager")).await?, WHY)?;

            // Kueue's account makes a copy, of which a user may change all but that.
            let copy = create(&kueue, namespace, &labelled("copy")).await?;
            ensure!(copy.code == 201, "{copy:?}");
            for value in [json!("another"), Value::Null] {
                forbidden(&relabel(&user, namespace, "copy", value).await?, WHY)?;
            }
            let other = json!({"metadata": {"labels": {"team": "vision"}}});
            let one = path(namespace, "/copy");
            let changed = ask(&user, Method::PATCH, &one, MERGE, &other).await?;
            ensure!(changed.code == 200, "{changed:?}");
            let removed = relabel(&tenant.client, namespace, "copy", Value::Null).await?;
            ensure!(removed.code == 200, "an administrator may not: {removed:?}");
            Ok(())
        })
        .await
}
