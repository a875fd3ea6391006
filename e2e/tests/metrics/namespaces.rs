//! Metrics about jobs tell namespaces apart, if they are told to, up to a bound.

use anyhow::{Result, ensure};
use e2e::fixtures::{COMPLETES, PATIENCE, POOL, RUNS};
use e2e::until::until_ok;
use serde_json::json;

use super::exposition::Exposition;
use super::test;

const LABEL: &str = "job_namespace";

#[tokio::test]
async fn by_default_metrics_about_jobs_do_not_tell_namespaces_apart() -> Result<()> {
    test("default", async |tenant, operator| {
        tenant.create("job", RUNS, json!({})).await?;
        tenant.runs("job").await?;
        let shown = Exposition::of(operator).await?;
        let labelled: Vec<_> = shown.samples.keys().filter(|it| it.contains(LABEL)).collect();
        ensure!(labelled.is_empty(), "{labelled:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn namespaces_beyond_the_limit_are_counted_as_one() -> Result<()> {
    POOL.test("first", async |first| {
        let operator = first.world.start_operator_with("metrics: {jobNamespaces: 1}").await?;
        first.create("job", RUNS, json!({})).await?;
        first.runs("job").await?;
        let name = &first.namespace;
        let of = |namespace: &str, metric: &str| format!("{metric}{{{LABEL}=\"{namespace}\"");
        let running = format!("{},state=\"running\"}}", of(name, "trainjob_jobs"));
        until_ok("the first namespace has a name", PATIENCE, || async {
            let shown = Exposition::of(&operator).await?;
            ensure!(shown.count(&running)? == 1, "none runs");
            ensure!(shown.count(&format!("{}}}", of(name, "trainjob_started_total")))? == 1);
            Ok(())
        })
        .await?;

        let second = first.world.tenant("second").await?;
        second.create("job", COMPLETES, json!({})).await?;
        second.completes("job").await?;
        let complete = format!("{},state=\"complete\"}}", of("_other", "trainjob_jobs"));
        let ended = "outcome=\"complete\",reason=\"AllJobsCompleted\"}";
        let finished =
            |namespace: &str| format!("{},{ended}", of(namespace, "trainjob_finished_total"));
        let shown = until_ok("the second has none", PATIENCE, || async {
            let shown = Exposition::of(&operator).await?;
            ensure!(shown.count(&complete)? == 1, "none is complete");
            ensure!(shown.count(&finished("_other"))? == 1, "the end of the second is missing");
            Ok(shown)
        })
        .await?;
        // Prometheus has to see a counter before it grows.
        ensure!(shown.count(&finished(name))? == 0, "the first job has not finished");
        ensure!(!shown.samples.keys().any(|it| it.contains(&second.namespace)), "it has a name");
        second.clear().await?;
        Ok(())
    })
    .await
}
