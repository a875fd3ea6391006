//! Trap 11: JobSets that are restarted as a whole, that start their jobs in an order, and that are made anew.

use anyhow::{Context, Result, ensure};
use e2e::accounting::{becomes_final, holds};
use e2e::apply::apply;
use e2e::fixtures::{COMPLETES_AFTER, PATIENCE, RUNS, runtime};
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{judged, nodes, others_come, run_held};

/// A runtime whose nodes fail a second after they were started, and whose JobSets are restarted once. Another job, `first`,
/// does what these annotations say. `more` is in the JobSet, `of_node` in the job of the nodes.
fn in_order(name: &str, first: &Value, more: &Value, of_node: &Value) -> Result<Value> {
    let fails = json!({COMPLETES_AFTER: "1s", "e2e.trainjob.dev/outcome": "fail"});
    let mut in_order = runtime(name, &fails, 3, None);
    let spec = in_order.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
    let spec = spec.context("no JobSet")?;
    spec.extend(more.as_object().cloned().unwrap_or_default());
    let jobs = spec.get_mut("replicatedJobs").and_then(Value::as_array_mut);
    let jobs = jobs.context("no replicated jobs")?;
    let node = jobs.first_mut().and_then(Value::as_object_mut).context("no node")?;
    let mut before = Value::Object(node.clone());
    node.extend(of_node.as_object().cloned().unwrap_or_default());
    *before.pointer_mut("/name").context("no name")? = json!("first");
    *before.pointer_mut("/template/metadata").context("no labels")? = json!({});
    let annotations = before.pointer_mut("/template/spec/template/metadata/annotations");
    first.clone_into(annotations.context("no annotations")?);
    jobs.insert(0, before);
    Ok(in_order)
}

/// Nodes depend on the first job, and all Jobs are gone before any is made again.
fn blocking() -> Result<Value> {
    let policy = json!({"maxRestarts": 1, "restartStrategy": "BlockingRecreate"});
    let depends = json!({"dependsOn": [{"name": "first", "status": "Complete"}]});
    let first = json!({COMPLETES_AFTER: "1s"});
    in_order("blocking", &first, &json!({"failurePolicy": policy}), &depends)
}

/// Nodes are started when the first job runs, which does so until it is stopped.
fn starts_in_order() -> Result<Value> {
    let order = json!({"startupPolicyOrder": "InOrder"});
    let more = json!({"failurePolicy": {"maxRestarts": 1}, "startupPolicy": order});
    in_order("in-order", &json!({}), &more, &json!({}))
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
async fn all_pods_of_a_job_set_that_starts_its_jobs_in_order_are_counted() -> Result<()> {
    judged("in-order", async |tenant| {
        apply(&tenant.client, "default", vec![starts_in_order()?]).await?;
        tenant.create("in-order", "in-order", nodes(2)).await?;
        tenant.becomes("in-order", "Failed").await?;
        let status = becomes_final(tenant, "in-order").await?;
        let PodCounts { active, succeeded, failed, deleted } = status.totals.pods;
        ensure!((active, succeeded, failed + deleted) == (0, 0, 6), "{status:#?}");
        ensure!(status.totals.restarts == 1 && holds(&status, "Exact"), "{status:#?}");
        let first = status.replicated_jobs.iter().find(|job| job.name == "first");
        let first = first.context("the first job is not recorded")?;
        let stopped = first.attempts.iter().map(|attempt| attempt.sums.pods.deleted);
        ensure!(stopped.collect::<Vec<_>>() == [1, 1], "{status:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_set_that_is_made_anew_is_another_one_of_the_same_record() -> Result<()> {
    judged("anew", async |tenant| {
        tenant.create("anew", RUNS, nodes(2)).await?;
        let first = run_held(tenant, "anew", 2).await?;
        tenant.delete_job_set("anew").await?;
        others_come(tenant, "anew", &first, PATIENCE).await?;
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
