//! Jobs with a TTL of their own, which Kubernetes executes (R31).

use anyhow::{Result, ensure};
use e2e::apply::apply;
use e2e::faults::retention::policy;
use e2e::fixtures::{COMPLETES_AFTER, PATIENCE};
use e2e::kueue::{Clock, QueueOptions, Setting};
use e2e::until::until_ok;
use serde_json::{Value, json};

use super::workloads::test;
use super::{is_enforcing, named, scaled, ttl};

/// Jobs that are created together.
const TOGETHER: usize = 50;

/// A Job that completes, with or without a TTL.
fn job(name: &str, own_ttl: Option<i64>) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {
            "metadata": {"annotations": {COMPLETES_AFTER: "100ms"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]},
        }},
    });
    if let Some(seconds) = own_ttl {
        job["spec"]["ttlSecondsAfterFinished"] = json!(seconds);
    }
    job
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_with_a_ttl_of_their_own_are_left_to_kubernetes() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    test(&setting, "own-ttl", QueueOptions::default(), async |case, place| {
        // What has no TTL of its own is due at once.
        place.apply(policy("jobs", "Job", &ttl(0))).await?;
        place.launch().await?;
        place.status("jobs", is_enforcing).await?;
        let names: Vec<_> = named("own", scaled(50, 1_000)).collect();
        let mut jobs: Vec<_> = names.iter().map(|name| job(name, Some(2))).collect();
        jobs.push(job("none", None));
        for some in jobs.chunks(TOGETHER) {
            apply(&case.tenant.client, &case.tenant.namespace, some.to_vec()).await?;
        }
        until_ok("all are gone", scaled(1, 10) * PATIENCE, || async {
            let left = place.names("jobs").await?;
            ensure!(left.is_empty(), "{} are there: {:?}", left.len(), left.first());
            Ok(())
        })
        .await?;
        let deleted: Vec<_> = place.deleted().into_keys().collect();
        ensure!(deleted == ["none"], "deletions were asked for of {deleted:?}");
        Ok(())
    })
    .await
}
