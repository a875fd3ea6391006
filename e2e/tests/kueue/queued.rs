//! Many jobs in the queue cost the operator nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::fixtures::status::conditions_of;
use e2e::fixtures::{PATIENCE, RUNS, stays};
use e2e::kueue::{Ask, Case, Clock, QueueOptions, Setting, job};
use e2e::until::until_ok;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, PostParams};
use serde_json::json;
use trainjob_api::conditions;

use crate::{DEADLINE, TTL};

/// How many jobs wait.
const MANY: usize = 500;
/// How many are created at a time.
const AT_ONCE: usize = 16;
/// The requests that a suspended job costs when it is created: its conditions, the snapshot of its runtime, its suspended
/// JobSet, and what that JobSet says of itself as it is told that it is suspended.
const FIRST_PASS: usize = 5;
/// How long the operator is watched doing nothing.
const WINDOW: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn queued_jobs_cost_no_request_after_the_first_pass() -> Result<()> {
    // A box to itself: Kueue takes one TrainJob at a time, and others would wait for hundreds.
    let setting = Box::pin(Setting::start(Clock::LastResume, json!({}))).await?;
    setting
        .story("many", QueueOptions::default(), async |case| {
            case.submit("holds", RUNS, Ask::low(8), json!({})).await?;
            case.runs("holds").await?;
            let begun = Instant::now();
            create_many(case).await?;
            let created = begun.elapsed().as_secs();
            all_are_queued(case).await?;
            let queued = begun.elapsed().as_secs();
            println!("{MANY} jobs: all created after {created} s, all queued after {queued} s");

            let known = settled(async || Ok(case.tenant.requests_after(0)?.len())).await?;
            let (name, requests) = dearest(case)?;
            println!("{known} requests of the operator; most of them for {name}: {requests:?}");
            ensure!(requests.len() <= FIRST_PASS, "{name} cost {requests:?}");
            stays("no request is made for them", WINDOW, async || {
                let later = case.tenant.requests_after(known)?;
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

/// Waits until each has a Workload and a JobSet, and says that it is suspended.
async fn all_are_queued(case: &Case<'_>) -> Result<()> {
    let all = ListParams::default();
    until_ok("all of them are queued", PATIENCE * 5, || async {
        let workloads = case.workloads.list_metadata(&all).await?.items.len();
        let jobs = case.tenant.jobs.list(&all).await?;
        let suspended = jobs.iter().filter(|job| {
            conditions::find_true(conditions_of(job), conditions::SUSPENDED).is_some()
        });
        let suspended = suspended.count();
        let job_sets = case.tenant.job_sets.list_metadata(&all).await?.items.len();
        let queued = (workloads, suspended, job_sets) == (MANY + 1, MANY, MANY + 1);
        ensure!(queued, "{workloads} Workloads, {suspended} suspended, {job_sets} JobSets");
        Ok(())
    })
    .await
}

/// The queued job that most requests were made for, and what they were.
fn dearest(case: &Case<'_>) -> Result<(String, Vec<String>)> {
    let mut of_jobs = BTreeMap::<String, Vec<String>>::new();
    for request in case.tenant.requests_after(0)? {
        let object = request.object;
        if let Some(number) = object.name.strip_prefix("waits-") {
            let number = number.split('-').next().unwrap_or_default();
            let resource = format!("{} {} {}", request.verb, object.resource, object.subresource);
            of_jobs.entry(format!("waits-{number}")).or_default().push(resource);
        }
    }
    Ok(of_jobs.into_iter().max_by_key(|(_, requests)| requests.len()).unwrap_or_default())
}

/// Waits until a count has not changed for two seconds, and returns it.
async fn settled(count: impl AsyncFn() -> Result<usize>) -> Result<usize> {
    let begun = Instant::now();
    loop {
        let known = count().await?;
        let same = stays("the count", Duration::from_secs(2), async || {
            ensure!(count().await? == known, "it changes");
            Ok(())
        });
        if same.await.is_ok() {
            return Ok(known);
        }
        ensure!(begun.elapsed() < PATIENCE * 3, "the count does not settle: {known}");
    }
}
