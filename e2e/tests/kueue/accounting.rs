//! Pods of a job that Kueue preempts are counted.

use anyhow::{Result, ensure};
use e2e::accounting::{
    Accounting, become_older, becomes_final, holds, install_accounting, reasons, start_operator,
    status,
};
use e2e::fixtures::{PATIENCE, RUNS};
use e2e::kueue::{Ask, Case, Clock, QueueOptions, Setting, Workload};
use e2e::recorder::AccountingRecorder;
use e2e::until::until_ok;
use invariants::accounting::Terms;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_a_preempted_job_count_as_suspended_and_hold_nobody_up() -> Result<()> {
    let setting = Setting::start(Clock::Creation, json!({})).await?;
    let world = &setting.world;
    install_accounting(&world.cluster).await?;
    let program = Accounting::start(&world.cluster, "{batchPeriod: 1s}").await?;
    program.leads().await?;
    start_operator(world, "Exact").await?;
    let recorder = AccountingRecorder::start(world.cluster.client().await?).await?;
    let judged = async |case: &Case<'_>| {
        preempted(case).await?;
        recorder.judge(&[&case.tenant.namespace], &[], &Terms::default()).await
    };
    setting.test("counted", QueueOptions::default(), judged).await
}

async fn preempted(case: &Case<'_>) -> Result<()> {
    case.submit("low", RUNS, Ask::low(8), json!({})).await?;
    case.runs("low").await?;
    let pods = until_ok("there is its Pod", PATIENCE, || async {
        let pods = case.tenant.pods_of("low").await?;
        ensure!(pods.len() == 1, "{} Pods", pods.len());
        Ok(pods)
    })
    .await?;
    become_older(&pods).await?;
    case.submit("high", RUNS, Ask::high(8), json!({})).await?;
    case.runs("high").await?;
    let preempted = |it: &Workload| it.reason("Evicted") == Some("Preempted");
    case.workload_is("low", "preempted", preempted).await?;
    until_ok("the Pod that went is counted", PATIENCE, || async {
        let status = status(case.tenant, "low").await?;
        ensure!(reasons(&status) == [("Suspended", 1)], "{status:#?}");
        ensure!(!holds(&status, "Final"), "it is final");
        Ok(())
    })
    .await?;

    case.finish("high").await?;
    case.runs("low").await?;
    case.finish("low").await?;
    let status = becomes_final(case.tenant, "low").await?;
    let reasons = reasons(&status);
    ensure!(reasons == [("Suspended", 1)] && status.totals.pods.succeeded == 1, "{status:#?}");
    // It is the same attempt, and what was preempted is wasted.
    ensure!(status.totals.restarts == 0 && holds(&status, "Exact"), "{status:#?}");
    ensure!(status.totals.wasted_gpu_seconds > 0, "{status:#?}");
    Ok(())
}
