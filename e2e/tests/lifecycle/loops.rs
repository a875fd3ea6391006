//! A TTL deletes a job that somebody makes again, over and over (`docs/semantics.md`, T12).

use anyhow::{Result, ensure};
use e2e::fixtures::{COMPLETES, PATIENCE, Tenant};
use e2e::until::until_ok;
use kube::api::PostParams;
use serde_json::json;
use trainjob_api::TrainJob;

use super::test;

/// Creates a job with a TTL of 0 as Flux does, and waits until it is gone again.
async fn once(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    let job: TrainJob = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {
            "kustomize.toolkit.fluxcd.io/name": "apps",
            "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
        }},
        "spec": {"runtimeRef": {"name": COMPLETES}, "ttlSecondsAfterFinished": 0},
    }))?;
    tenant.jobs.create(&PostParams::default(), &job).await?;
    tenant.gone(name).await
}

#[tokio::test]
async fn a_job_that_is_made_again_three_times_gets_a_warning_and_is_not_held_back() -> Result<()> {
    test("loop", async |tenant| {
        for _ in 0..3 {
            once(tenant, "job").await?;
        }
        ensure!(tenant.told("job", "RecreateLoop").await?.is_empty(), "told too early");
        once(tenant, "job").await?;
        let note = tenant.tells("job", "RecreateLoop").await?;
        ensure!(note.contains("by Flux (Kustomization flux-system/apps)"), "{note}");
        until_ok("the loop is counted", PATIENCE, || async {
            let page = tenant.world.metrics().await?;
            let loops =
                page.lines().find_map(|line| line.strip_prefix("trainjob_ttl_recreate_loops "));
            // Other tests of the box may loop, too.
            let counted = loops.and_then(|loops| loops.parse().ok()).unwrap_or(0);
            ensure!(counted > 0, "{loops:?}");
            Ok(())
        })
        .await?;
        // Another name is not a part of it.
        once(tenant, "other").await?;
        once(tenant, "other").await?;
        ensure!(tenant.told("other", "RecreateLoop").await?.is_empty(), "another name");
        Ok(())
    })
    .await
}
