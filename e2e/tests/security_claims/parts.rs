//! What a runtime of very many parts costs the admission webhook: an empty volume is a few bytes of text, and kilobytes as
//! a value.

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::{PATIENCE, runtime, train_job};
use e2e::until::until_ok;
use e2e::webhook::{Webhook, WebhookOptions};
use futures::future::try_join_all;
use serde_json::json;

use super::create;

/// Nearly as many as there may be.
const VOLUMES: usize = 13_000;
/// Jobs that are created at the same time.
const JOBS: usize = 40;
/// The chart's limit, in bytes.
const LIMIT: usize = 256 * 1024 * 1024;

/// How many runtimes the webhook knows.
async fn known(webhook: &Webhook) -> Result<f64> {
    webhook.labelled_metric("trainjob_webhook_cached_objects", "ClusterTrainingRuntime").await
}

/// Also while a `PriorityClass` that they name is asked for.
#[tokio::test]
async fn jobs_on_a_runtime_of_very_many_parts_are_judged_one_at_a_time() -> Result<()> {
    let cluster = Cluster::start(Options { crds: true, ..Options::bare() }).await?;
    let client = cluster.client().await?;
    let webhook = Webhook::start(&cluster, WebhookOptions::default()).await?;
    webhook.wait_ready().await?;
    webhook.wait_asked(&client).await?;

    let mut large = runtime("large", &json!({}), 3, None);
    let pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
    let pod = large.pointer_mut(pod).context("a runtime has a Pod")?;
    pod["priorityClassName"] = json!("system-node-critical");
    pod["volumes"] = (0..VOLUMES).map(|number| json!({"name": format!("v{number}")})).collect();
    let before = known(&webhook).await?;
    apply(&client, "default", vec![large]).await?;
    until_ok("the webhook knows of it", PATIENCE, || async {
        ensure!(known(&webhook).await? > before, "it does not");
        Ok(())
    })
    .await?;

    let created = (0..JOBS).map(async |number| {
        let job = train_job(&format!("job-{number}"), "large", &json!({}));
        create(&client, "default", &job).await
    });
    for answer in try_join_all(created).await? {
        ensure!(answer.code == 201, "{answer:?}");
    }
    let peak = webhook.process().peak_memory()?;
    ensure!(peak < LIMIT, "{peak} bytes at most, expected less than {LIMIT}");
    Ok(())
}
