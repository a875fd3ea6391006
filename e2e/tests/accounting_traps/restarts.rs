//! Trap 11: JobSets that are restarted as a whole, that start their jobs in an order, and that are made anew.

use anyhow::{Context, Result, ensure};
use e2e::accounting::{becomes_final, holds};
use e2e::apply::apply;
use e2e::fixtures::{COMPLETES_AFTER, RUNS, runtime};
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{judged, nodes, run_held};

/// A runtime whose nodes fail a second after a job that they depend on has completed, and whose JobSets are restarted once,
/// after all Jobs are gone.
fn blocking() -> Result<Value> {
    let fails = json!({COMPLETES_AFTER: "1s", "e2e.trainjob.dev/outcome": "fail"});
    let mut blocking = runtime("blocking", &fails, 3, None);
    let spec = blocking.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
    let spec = spec.context("no JobSet")?;
    spec.insert(
        "failurePolicy".to_owned(),
        json!({"maxRestarts": 1, "restartStrategy": "BlockingRecreate"}),
    );
    let jobs = spec.get_mut("replicatedJobs").and_then(Value::as_array_mut);
    let jobs = jobs.context("no replicated jobs")?;
    let node = jobs.first_mut().and_then(Value::as_object_mut).context("no node")?;
    let mut first = Value::Object(node.clone());
    node.insert("dependsOn".to_owned(), json!([{"name": "first", "status": "Complete"}]));
    *first.pointer_mut("/name").context("no name")? = json!("first");
    *first.pointer_mut("/template/metadata").context("no labels")? = json!({});
    let annotations = first.pointer_mut("/template/spec/template/metadata/annotations");
    *annotations.context("no annotations")? = json!({COMPLETES_AFTER: "1s"});
    jobs.insert(0, first);
    Ok(blocking)
}

#[tokio::test]
async fn all_pods_of_a_job_set_that_is_recreated_as_a_whole_are_counted() -> Result<()> {
    judged("blocking", async |tenant| {
        apply(&tenant.client, "default", vec![blocking()?]).await?;
        tenant.create("blocking", "blocking", nodes(2)).await?;
        tenant.becomes("blocking", "Failed").await?;
        let status = becomes_final(tenant, "blocking").await?;
        let PodCounts { active, succeeded, failed, deleted } = status.totals.pods;
        // Of two nodes that fail together, the deletion may reach one first.
        ensure!((active, succeeded, failed + deleted) == (0, 2, 4), "{status:#?}");
        ensure!(status.totals.restarts == 1 && status.outcome == "Failed", "{status:#?}");
        ensure!(holds(&status, "Exact") && status.lost.is_empty(), "{status:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_set_that_is_made_anew_is_another_one_of_the_same_record() -> Result<()> {
    judged("anew", async |tenant| {
        tenant.create("anew", RUNS, nodes(2)).await?;
        run_held(tenant, "anew", 2).await?;
        tenant.delete_job_set("anew").await?;
        run_held(tenant, "anew", 2).await?;
        tenant.delete("anew").await?;
        let status = becomes_final(tenant, "anew").await?;
        let deleted = PodCounts { deleted: 4, ..PodCounts::default() };
        ensure!(status.totals.pods == deleted && status.job_sets.len() == 2, "{status:#?}");
        ensure!(status.totals.restarts == 1 && holds(&status, "Exact"), "{status:#?}");
        Ok(())
    })
    .await
}
