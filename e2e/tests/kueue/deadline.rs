//! Deadlines of queued jobs, by both clocks.

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::{created_at, finished_at, is_failed_by_deadline, on_time, time_until};
use e2e::fixtures::{COMPLETES, PATIENCE, RUNS, consistently, stubborn};
use e2e::kueue::{Ask, Case, Clock, QueueOptions, Setting, Workload, single_node};
use e2e::until::until_ok;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use trainjob_api::conditions::FAILED;
use trainjob_api::time::Timestamp;

use super::{DEADLINE, KEPT, LONG, TTL};

/// Long enough to be queued or to run before, on a busy machine.
const BRIEF: i64 = 15;
/// A runtime whose Pods do not react to SIGTERM.
const STUBBORN: &str = "stubborn-for-long";
/// How long they take to end; longer than Kueue takes to admit the next job, on a busy machine.
const GRACE: i64 = 25;

/// Waits until a job was failed by its deadline, which started at `start`.
async fn fails(case: &Case<'_>, name: &str, start: Timestamp, seconds: i64) -> Result<()> {
    let job = case.tenant.becomes(name, FAILED).await?;
    ensure!(is_failed_by_deadline(&job), "{job:?}");
    on_time(start.plus(seconds), finished_at(&job)?)
}

/// Sees that a job does not fail until this instant has passed.
async fn waits_beyond(case: &Case<'_>, name: &str, instant: Timestamp) -> Result<()> {
    consistently("it does not fail in the queue", time_until(instant.plus(1)), async || {
        case.queued(name).await
    })
    .await
}

fn failed(workload: &Workload) -> bool {
    workload.is("Finished") && workload.reason("Finished") == Some("Failed")
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_by_creation_fails_a_job_in_the_queue_and_its_workload_with_it() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    setting
        .test("queue-deadline", QueueOptions::default(), async |case| {
            case.submit("runs", RUNS, Ask::low(8), json!({})).await?;
            case.runs("runs").await?;
            case.submit("waits", RUNS, Ask::low(8), json!({DEADLINE: BRIEF, TTL: KEPT})).await?;
            case.queued("waits").await?;
            case.tenant.fails_by_deadline("waits").await?;
            case.workload_is("waits", "finished as failed", failed).await?;
            ensure!(case.tenant.pods_of("waits").await?.is_empty(), "it has Pods");
            case.both_gone("waits").await
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_by_last_resume_starts_when_the_queue_lets_the_job_go() -> Result<()> {
    let setting = Setting::shared(Clock::LastResume).await?;
    setting
        .test("resume-deadline", QueueOptions::default(), async |case| {
            case.submit("holds", RUNS, Ask::low(8), json!({})).await?;
            case.runs("holds").await?;
            let both = json!({DEADLINE: BRIEF, TTL: KEPT});
            let job = case.submit("waits", RUNS, Ask::low(8), both).await?;
            case.queued("waits").await?;
            waits_beyond(case, "waits", created_at(&job).plus(BRIEF)).await?;
            case.finish("holds").await?;
            let resumed = case.runs("waits").await?;
            fails(case, "waits", resumed, BRIEF).await?;
            case.workload_is("waits", "finished as failed", failed).await?;
            case.tenant.released("waits").await?;
            case.both_gone("waits").await
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_by_last_resume_starts_anew_after_preemption() -> Result<()> {
    let setting = Setting::shared(Clock::LastResume).await?;
    setting
        .test("anew", QueueOptions::default(), async |case| {
            case.submit("low", RUNS, Ask::low(8), json!({DEADLINE: LONG, TTL: KEPT})).await?;
            let first = case.runs("low").await?;
            case.submit("high", RUNS, Ask::high(8), json!({})).await?;
            case.runs("high").await?;
            case.queued("low").await?;
            waits_beyond(case, "low", first.plus(LONG)).await?;
            case.finish("high").await?;
            let second = case.runs("low").await?;
            fails(case, "low", second, LONG).await?;
            case.both_gone("low").await
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_by_creation_goes_on_while_a_job_is_preempted() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    setting
        .test("goes-on", QueueOptions::default(), async |case| {
            let both = json!({DEADLINE: 2 * LONG, TTL: 2 * LONG});
            case.submit("low", RUNS, Ask::low(8), both).await?;
            case.runs("low").await?;
            case.submit("high", RUNS, Ask::high(8), json!({})).await?;
            case.runs("high").await?;
            let failed_job = case.tenant.fails_by_deadline("low").await?;
            ensure!(failed_job.spec.suspend == Some(true), "it was not preempted before");
            case.workload_is("low", "finished as failed", failed).await?;
            case.finish("high").await?;
            case.tenant.becomes("high", "Complete").await?;
            let stored = case.tenant.jobs.get("low").await?;
            ensure!(stored.spec.suspend == Some(true), "Kueue resumed a job that has failed");
            Ok(())
        })
        .await
}

async fn install_stubborn(setting: &Setting) -> Result<()> {
    let manifest = stubborn(STUBBORN, GRACE).to_string();
    setting.world.cluster.apply_yaml("default", &manifest).await?;
    Ok(())
}

/// When the last process of the Pod of a job is killed at the latest, as soon as that is known.
async fn is_killed_at(case: &Case<'_>, job: &str) -> Result<Timestamp> {
    until_ok(format!("the Pod of {job} is being stopped"), PATIENCE, || async {
        let pod = case.tenant.pods_of(job).await?.pop().context("it is gone")?;
        let deletion = pod.metadata.deletion_timestamp.context("it is not being stopped")?;
        Ok(Timestamp::from(&deletion))
    })
    .await
}

/// When the Workload of a job was admitted.
async fn is_admitted_at(case: &Case<'_>, job: &str) -> Result<Timestamp> {
    let workload = case.workload_is(job, "admitted", |it| it.is("Admitted")).await?;
    let since = workload.condition("Admitted").and_then(|it| it.get("lastTransitionTime"));
    let since: Time = serde_json::from_value(since.cloned().context("no time")?)?;
    Ok(Timestamp::from(&since))
}

/// Kueue takes a job for finished as soon as it has failed. So the quota is free before the node is, by as much as
/// the Pods take to end; the Pods of the next job wait for the scheduler meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn deadline_frees_quota_at_once_and_gpus_when_the_pods_are_gone() -> Result<()> {
    let setting = Setting::shared(Clock::LastResume).await?;
    install_stubborn(&setting).await?;
    setting
        .test("quota", single_node(), async |case| {
            let both = json!({DEADLINE: LONG, TTL: 60});
            case.submit("stubborn", STUBBORN, Ask::low(8), both).await?;
            let resumed = case.runs("stubborn").await?;
            case.submit("next", COMPLETES, Ask::low(8), json!({})).await?;
            case.queued("next").await?;
            let killed = is_killed_at(case, "stubborn").await?;
            fails(case, "stubborn", resumed, LONG).await?;
            let admitted = is_admitted_at(case, "next").await?;
            ensure!(admitted < killed, "admitted at {admitted}, the GPUs were free at {killed}");
            case.workload_is("stubborn", "finished as failed", failed).await?;
            case.tenant.released("stubborn").await?;
            let completed = finished_at(&case.tenant.completes("next").await?)?;
            ensure!(completed >= killed, "it ran before the GPUs were free, at {completed}");
            Ok(())
        })
        .await
}

/// Kueue waits until no Pod is active; one that is being stopped is not, for the Job controller.
#[tokio::test(flavor = "multi_thread")]
async fn preemption_frees_quota_while_pods_are_being_stopped() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    install_stubborn(&setting).await?;
    setting
        .test("grace", single_node(), async |case| {
            case.submit("stubborn", STUBBORN, Ask::low(8), json!({})).await?;
            case.runs("stubborn").await?;
            case.submit("high", COMPLETES, Ask::high(8), json!({})).await?;
            let killed = is_killed_at(case, "stubborn").await?;
            let admitted = is_admitted_at(case, "high").await?;
            ensure!(admitted < killed, "admitted at {admitted}, the GPUs were free at {killed}");
            let completed = finished_at(&case.tenant.completes("high").await?)?;
            ensure!(completed >= killed, "it ran before the GPUs were free, at {completed}");
            case.runs("stubborn").await?;
            Ok(())
        })
        .await
}
