//! Whole lives of jobs, and what their records say afterwards.

use anyhow::{Context, Result, ensure};
use e2e::accounting::{Counted, becomes_final, holds, reason, records};
use e2e::apply::apply;
use e2e::fixtures::{COMPLETES, COMPLETES_AFTER, PATIENCE, RUNS, Tenant, runtime};
use e2e::until::until_ok;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::record::{PodCounts, TrainJobRecordStatus};
use trainjob_api::lifecycle::v1alpha1::{ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER};

/// A runtime whose Pods fail after a second, and whose JobSets are restarted once.
const RESTARTS: &str = "restarts";

/// So many nodes, each with a GPU.
fn nodes(count: u32) -> Value {
    let gpus = json!({"limits": {"nvidia.com/gpu": "1"}});
    json!({"trainer": {"numNodes": count, "resourcesPerNode": gpus}})
}

async fn install_restarts(tenant: &Tenant<'_>) -> Result<()> {
    let fails = json!({COMPLETES_AFTER: "1s", "e2e.trainjob.dev/outcome": "fail"});
    let mut restarts = runtime(RESTARTS, &fails, 3, None);
    let job_set = restarts.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
    let policy = json!({"maxRestarts": 1});
    job_set.context("no JobSet")?.insert("failurePolicy".to_owned(), policy);
    apply(&tenant.client, "default", vec![restarts]).await?;
    Ok(())
}

/// No Pod of a job has our finalizer.
async fn is_released(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    until_ok("no Pod is held", PATIENCE, || async {
        for pod in tenant.pods_of(job).await? {
            let is_held = pod.finalizers().iter().any(|it| it == ACCOUNTING_FINALIZER);
            ensure!(!is_held, "{} is", pod.name_any());
        }
        Ok(())
    })
    .await
}

/// The GPU seconds of a record are those of its attempts, and there are some.
fn adds_up(status: &TrainJobRecordStatus) -> Result<()> {
    let attempts = status.replicated_jobs.iter().flat_map(|job| &job.attempts);
    let of_attempts: u64 = attempts.filter_map(|it| it.sums.seconds.get("nvidia.com/gpu")).sum();
    ensure!(status.totals.gpu_seconds == of_attempts, "{status:#?}");
    ensure!(of_attempts > 0, "no Pod used a GPU: {status:#?}");
    Ok(())
}

#[tokio::test]
async fn exact_counts_every_pod_of_jobs_that_complete_fail_or_are_deleted() -> Result<()> {
    let counted = Box::pin(Counted::start("Exact", "{batchPeriod: 1s}")).await?;
    counted
        .test("exact", async |tenant| {
            install_restarts(tenant).await?;
            tenant.create("completes", COMPLETES, nodes(3)).await?;
            tenant.create("fails", RESTARTS, nodes(1)).await?;
            tenant.create("runs", RUNS, nodes(2)).await?;
            let mut spec = nodes(2);
            spec["ttlSecondsAfterFinished"] = json!(0);
            tenant.create("vanishes", COMPLETES, spec).await?;

            let status = becomes_final(tenant, "completes").await?;
            ensure!(status.outcome == "Complete" && holds(&status, "Exact"), "{status:#?}");
            let succeeded = PodCounts { succeeded: 3, ..PodCounts::default() };
            ensure!(status.totals.pods == succeeded, "{status:#?}");
            ensure!(status.totals.wasted_gpu_seconds == 0, "{status:#?}");
            adds_up(&status)?;
            is_released(tenant, "completes").await?;

            let status = becomes_final(tenant, "fails").await?;
            let failed = PodCounts { failed: 2, ..PodCounts::default() };
            ensure!(status.outcome == "Failed" && status.totals.pods == failed, "{status:#?}");
            ensure!(status.totals.restarts == 1 && status.causes.len() == 2, "{status:#?}");
            ensure!(status.totals.wasted_gpu_seconds == status.totals.gpu_seconds, "{status:#?}");
            ensure!(status.exit_codes.get("1") == Some(&2), "{status:#?}");
            adds_up(&status)?;

            let status = becomes_final(tenant, "vanishes").await?;
            tenant.gone("vanishes").await?;
            let succeeded = PodCounts { succeeded: 2, ..PodCounts::default() };
            ensure!(status.outcome == "Complete" && status.totals.pods == succeeded, "{status:#?}");

            tenant.runs("runs").await?;
            tenant.delete("runs").await?;
            tenant.gone("runs").await?;
            let status = becomes_final(tenant, "runs").await?;
            let deleted = PodCounts { deleted: 2, ..PodCounts::default() };
            ensure!(status.outcome == "Deleted" && status.totals.pods == deleted, "{status:#?}");
            ensure!(holds(&status, "Exact") && status.lost.is_empty(), "{status:#?}");
            for job in ["completes", "fails", "vanishes", "runs"] {
                ensure!(records(tenant, job).await?.len() == 1, "{job} has not one record");
            }
            Ok(())
        })
        .await
}

#[tokio::test]
async fn observe_counts_without_a_finalizer_and_says_so() -> Result<()> {
    let counted = Box::pin(Counted::start("Observe", "{batchPeriod: 1s}")).await?;
    counted
        .test("observe", async |tenant| {
            tenant.create("completes", COMPLETES, nodes(2)).await?;
            tenant.create("runs", RUNS, nodes(1)).await?;
            let pod = tenant.runs("runs").await?;
            ensure!(!pod.finalizers().iter().any(|it| it == ACCOUNTING_FINALIZER), "{pod:?}");
            tenant.delete("runs").await?;
            let status = becomes_final(tenant, "completes").await?;
            let succeeded = PodCounts { succeeded: 2, ..PodCounts::default() };
            ensure!(status.totals.pods == succeeded, "{status:#?}");
            ensure!(reason(&status, "Exact") == Some("Observed"), "{status:#?}");
            adds_up(&status)?;
            for pod in tenant.pods_of("completes").await? {
                ensure!(
                    pod.annotations().get(ACCOUNTED_ANNOTATION) == pod.uid().as_ref(),
                    "{pod:?}"
                );
            }
            let status = becomes_final(tenant, "runs").await?;
            let deleted = PodCounts { deleted: 1, ..PodCounts::default() };
            ensure!(status.outcome == "Deleted" && status.totals.pods == deleted, "{status:#?}");
            ensure!(!holds(&status, "Exact"), "{status:#?}");
            Ok(())
        })
        .await
}
