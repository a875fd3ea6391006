//! Many jobs in the queue cost the operator nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::fixtures::status::conditions_of;
use e2e::fixtures::{PATIENCE, RUNS, Request, consistently};
use e2e::kueue::{Ask, Case, Clock, QueueOptions, Setting, job};
use e2e::until::until_ok;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::jiff;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use trainjob_api::{TrainJob, conditions};

use super::{DEADLINE, TTL};

/// The kind, as Kueue's configuration names it.
const KIND: &str = "TrainJob.trainer.kubeflow.org";
/// How many jobs wait.
const MANY: usize = 100;
/// How many are created at a time.
const AT_ONCE: usize = 16;
/// The requests that a suspended job costs when it is created: its conditions, the snapshot of its runtime, its suspended
/// JobSet, and what that JobSet says of itself as it is told that it is suspended.
const FIRST_PASS: usize = 5;
/// How long the operator is watched doing nothing.
const WINDOW: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn queued_jobs_cost_no_request_after_the_first_pass() -> Result<()> {
    // By default Kueue has one worker for TrainJobs. Even with ten, jobs of other tests would wait for these, hence a box of
    // its own.
    let workers = json!({"controller": {"groupKindConcurrency": {KIND: 10}}});
    let setting = Box::pin(Setting::start(Clock::LastResume, workers)).await?;
    setting
        .test("many", QueueOptions::default(), async |case| {
            case.submit("holds", RUNS, Ask::low(8), json!({})).await?;
            case.runs("holds").await?;
            let begun = Instant::now();
            create_many(case).await?;
            let created = begun.elapsed().as_secs();
            all_are_queued(case).await?;
            let queued = begun.elapsed().as_secs();
            println!("{MANY} jobs: all created after {created} s, all queued after {queued} s");

            let since = jiff::Timestamp::now();
            let all = case.tenant.world.requests(&case.tenant.namespace)?;
            let (name, requests) = dearest(&all)?;
            println!("{} requests of the operator; most for {name}: {requests:?}", all.len());
            ensure!(requests.len() <= FIRST_PASS, "{name} cost {requests:?}");
            consistently("no request is made for them", WINDOW, async || {
                let later = case.tenant.requests_since(since)?;
                ensure!(later.is_empty(), "{later:?}");
                Ok(())
            })
            .await?;
            let left = case.tenant.jobs.list_metadata(&ListParams::default()).await?.items.len();
            ensure!(left == MANY + 1, "{left} are left");
            Ok(())
        })
        .await
}

async fn create_many(case: &Case<'_>) -> Result<()> {
    let labels = &case.queue.labels("low");
    // By this clock it does not run in the queue.
    let both = &json!({DEADLINE: 5, TTL: 5});
    stream::iter(0..MANY)
        .map(|number| async move {
            let job = job(&format!("waits-{number}"), RUNS, labels, Ask::low(8), both)?;
            case.tenant.jobs.create(&PostParams::default(), &job).await?;
            anyhow::Ok(())
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// Waits until each has a Workload, and says that it is suspended and its JobSet as well.
async fn all_are_queued(case: &Case<'_>) -> Result<()> {
    let all = ListParams::default();
    until_ok("all of them are queued", PATIENCE * 10, || async {
        let workloads = case.workloads.list_metadata(&all).await?.items.len();
        let jobs = case.tenant.jobs.list(&all).await?;
        let suspended = jobs.iter().filter(|job| is_suspended_throughout(job)).count();
        let queued = (workloads, suspended) == (MANY + 1, MANY);
        ensure!(queued, "{workloads} Workloads, {suspended} suspended with their JobSet");
        Ok(())
    })
    .await
}

/// Whether the last thing that a suspended job has to say was said: the JobSet controller takes its time.
fn is_suspended_throughout(job: &TrainJob) -> bool {
    let of_jobs = job.status.as_ref().and_then(|status| status.jobs_status.as_ref());
    let counted = of_jobs.is_some_and(|all| all.iter().all(|it| it.suspended == 1));
    counted && conditions::find_true(conditions_of(job), conditions::SUSPENDED).is_some()
}

/// The queued job that most requests were made for, and what they were. One of which the API server failed a request costs
/// more, and does not count; few may be so.
fn dearest(requests: &[Request]) -> Result<(String, Vec<String>)> {
    let mut of_jobs = BTreeMap::<String, Vec<String>>::new();
    let mut failed = BTreeSet::new();
    for request in requests {
        let object = &request.object;
        if let Some(number) = object.name.strip_prefix("waits-") {
            let number = number.split('-').next().unwrap_or_default();
            let resource = format!("{} {} {}", request.verb, object.resource, object.subresource);
            let name = format!("waits-{number}");
            if !matches!(request.code(), 200..=428 | 430..=499) {
                failed.insert(name.clone());
            }
            of_jobs.entry(name).or_default().push(resource);
        }
    }
    ensure!(failed.len() <= MANY / 50, "requests failed of {failed:?}");
    of_jobs.retain(|name, _| !failed.contains(name));
    Ok(of_jobs.into_iter().max_by_key(|(_, requests)| requests.len()).unwrap_or_default())
}
