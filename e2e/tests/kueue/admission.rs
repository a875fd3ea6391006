//! A job in the queue: admitted, queued, resumed, preempted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::{COMPLETES, RUNS, consistently};
use e2e::kueue::{Ask, Clock, QUEUE_LABEL, QueueOptions, Setting};
use e2e::recorder::Recorder;
use invariants::State;
use serde_json::{Value, json};

use super::{DEADLINE, KEPT, LONG, TTL};

#[tokio::test(flavor = "multi_thread")]
async fn queued_job_is_resumed_with_the_node_selector_of_its_flavor() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    setting
        .test("queued", QueueOptions::default(), async |case| {
            for name in ["first", "second"] {
                case.submit(name, RUNS, Ask::low(4), json!({})).await?;
                case.runs(name).await?;
            }
            case.submit("third", COMPLETES, Ask::low(4), json!({})).await?;
            case.queued("third").await?;
            ensure!(case.node_selector("third").await? == Value::Null, "it is placed already");
            case.finish("first").await?;
            case.tenant.becomes("first", "Complete").await?;
            case.tenant.completes("third").await?;
            let selector = case.node_selector("third").await?;
            ensure!(selector == json!({"type": "kwok"}), "it selects {selector}");
            let pods = case.tenant.pods_of("third").await?;
            let spec = pods.first().and_then(|pod| pod.spec.as_ref()).context("it has no Pod")?;
            ensure!(
                json!(spec.node_selector) == json!({"type": "kwok"}),
                "{:?}",
                spec.node_selector
            );
            case.workload_is("third", "finished", |it| it.is("Finished")).await?;
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn preempted_job_is_resumed_and_keeps_deadline_and_ttl_in_every_version() -> Result<()> {
    let setting = Setting::shared(Clock::LastResume).await?;
    setting
        .test("preempted", QueueOptions::default(), async |case| {
            let recorder = Recorder::start(case.tenant.client.clone()).await?;
            let both = json!({DEADLINE: 600, TTL: 5});
            case.submit("low", RUNS, Ask::low(8), both.clone()).await?;
            let first = case.runs("low").await?;
            case.submit("high", RUNS, Ask::high(8), both).await?;
            case.runs("high").await?;
            let preempted = |it: &e2e::kueue::Workload| it.reason("Evicted") == Some("Preempted");
            case.workload_is("low", "preempted", preempted).await?;
            case.queued("low").await?;
            ensure!(case.node_selector("low").await? == Value::Null, "it is still placed");

            case.finish("high").await?;
            case.both_gone("high").await?;
            let second = case.runs("low").await?;
            ensure!(second > first, "it was resumed at {first} and {second}");
            case.finish("low").await?;
            case.both_gone("low").await?;

            recorder.caught_up_in(&case.tenant.namespace).await?;
            let mut versions = 0;
            for change in recorder.changes(Some(&case.tenant.namespace)) {
                if let State::TrainJob(job) = &change.object.state {
                    versions += 1;
                    let kept = (job.deadline, job.ttl) == (Some(600), Some(5));
                    ensure!(kept, "{} at {}: {job:?}", change.object.name, change.revision);
                }
            }
            ensure!(versions > 10, "only {versions} versions were seen");
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn job_of_a_queue_that_does_not_exist_waits_until_its_deadline_and_is_deleted() -> Result<()>
{
    let setting = Setting::shared(Clock::Creation).await?;
    setting
        .test("nowhere", QueueOptions::default(), async |case| {
            let labels = json!({QUEUE_LABEL: "nowhere"});
            let both = json!({DEADLINE: LONG, TTL: KEPT});
            case.submit_labelled("lost", RUNS, &labels, Ask::low(1), both).await?;
            let workload =
                case.workload_is("lost", "told", |it| it.condition("QuotaReserved").is_some());
            let said = workload.await?.brief();
            ensure!(said.contains("LocalQueue nowhere doesn't exist"), "{said}");
            case.tenant.fails_by_deadline("lost").await?;
            ensure!(case.tenant.pods_of("lost").await?.is_empty(), "it has Pods");
            case.both_gone("lost").await
        })
        .await
}

/// Kueue 0.19 takes the least number of Pods from Jobs of `batch` alone.
#[tokio::test(flavor = "multi_thread")]
async fn partial_admission_is_not_offered_to_train_jobs() -> Result<()> {
    let setting = Setting::shared(Clock::Creation).await?;
    setting
        .test("partial", QueueOptions::default(), async |case| {
            let ask = Ask { priority: "low", nodes: 3, gpus: 4 };
            let mut job =
                e2e::kueue::job("large", RUNS, &case.queue.labels("low"), ask, &json!({}))?;
            let least = ("kueue.x-k8s.io/job-min-parallelism".to_owned(), "1".to_owned());
            job.metadata.annotations = Some([least].into());
            case.tenant.jobs.create(&kube::api::PostParams::default(), &job).await?;
            case.queued("large").await?;
            let workload = case.workload("large").await?.context("it has no Workload")?;
            let sets = workload.0.data.pointer("/spec/podSets/0").context("no set of Pods")?;
            ensure!(sets.get("minCount").is_none(), "{sets}");
            consistently("it is queued", Duration::from_secs(3), async || {
                case.queued("large").await
            })
            .await
        })
        .await
}
