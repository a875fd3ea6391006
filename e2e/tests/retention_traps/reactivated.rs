//! A Workload of the real Kueue that a user activates again while its job is about to be deleted (R25).

use anyhow::{Context, Result, ensure};
use e2e::fixtures::RUNS;
use e2e::kueue::{Ask, Case, Clock, Setting, Workload};
use e2e::proxy::{Call, Fault};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::WINDOW;
use super::admission_checks::{answer_check, checked_queue, waits_for_check};
use super::workloads::{test, workloads};

/// Has the check of a job say no, and waits until Kueue has deactivated its Workload for that.
async fn given_up(case: &Case<'_>) -> Result<Workload> {
    let workload = waits_for_check(case, "job").await?;
    answer_check(case, &workload, "Rejected", Value::Null).await?;
    let is_given_up = |it: &Workload| {
        let reason = it.reason("Evicted").unwrap_or_default();
        it.0.data["spec"]["active"] == false && reason.starts_with("DeactivatedDueTo")
    };
    case.workload_is("job", "deactivated", is_given_up).await
}

fn reads_job(call: &Call) -> bool {
    call.verb == "get" && call.resource == "trainjobs" && call.name == "job"
}

#[tokio::test(flavor = "multi_thread")]
async fn job_is_kept_if_its_workload_is_activated_again_before_it_is_deleted() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    let checked = checked_queue(&setting).await?;
    test(&setting, "reactivated", checked, async |case, place| {
        let job = case.submit("job", RUNS, Ask::low(1), json!({})).await?;
        let workload = given_up(case).await?;
        place.apply(workloads(true)).await?;
        // The first read is for the plan.
        let reads = place.proxy.inject(reads_job, 2..=2, Fault::HoldRequest);
        place.launch().await?;
        reads.reached().await?;
        let active = Patch::Merge(json!({"spec": {"active": true}}));
        let name = workload.0.name_any();
        case.workloads.patch(&name, &PatchParams::default(), &active).await?;
        reads.remove();
        place.asks_for_nothing_more(WINDOW).await?;
        ensure!(place.deletions() == 0, "{} deletions", place.deletions());
        let there = case.workload("job").await?.context("its Workload is gone")?;
        ensure!(there.0.uid() == workload.0.uid(), "it has another Workload");
        ensure!(case.tenant.jobs.get("job").await?.uid() == job.uid(), "it is another job");
        Ok(())
    })
    .await
}
