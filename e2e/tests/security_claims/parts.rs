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

/// So many that all jobs together would take more than the limit as values.
const VOLUMES: usize = 6_000;
/// Jobs that are created at the same time.
const JOBS: usize = 16;
/// The chart's limit, in bytes.
const LIMIT: usize = 256 * 1024 * 1024;

/// How many runtimes the webhook knows.
async fn known(webhook: &Webhook) -> Result<f64> {
    webhook.labelled_metric("trainjob_webhook_cached_objects", "ClusterTrainingRuntime").await
}

/// Also while a `PriorityClass` that they name is asked for. Large reviews yield to everything else, so where the machine is
/// busy the API server may give one up, and is asked again.
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
    until_ok("it is stored", 3 * PATIENCE, || apply(&client, "default", vec![large.clone()]))
        .await?;
    until_ok("the webhook knows of it", PATIENCE, || async {
        ensure!(known(&webhook).await? > before, "it does not");
        Ok(())
    })
    .await?;

    let created = (0..JOBS).map(async |number| {
        let name = format!("job-{number}");
        let job = train_job(&name, "large", &json!({}));
        until_ok(format!("{name} is there"), 3 * PATIENCE, || async {
            let answer = create(&client, "default", &job).await?;
            // It may have been stored after all.
            ensure!([201, 409].contains(&answer.code), "{answer:?}");
            Ok(())
        })
        .await
    });
    try_join_all(created).await?;
    let peak = webhook.process().peak_memory()?;
    ensure!(peak < LIMIT, "{peak} bytes at most, expected less than {LIMIT}");
    Ok(())
}
