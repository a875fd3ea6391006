//! Traps 7 and 32: very many Pods of one TrainJob end at once, and Pods of very many kinds.

use anyhow::{Context, Result, ensure};
use e2e::accounting::{holds, reason, records};
use e2e::recorder::AccountingRecorder;
use invariants::accounting::Terms;
use serde_json::json;
use trainjob_api::lifecycle::v1alpha1::record::{
    ATTEMPTS, FAILURES, MESSAGE, NAMES, PodCounts, RESOURCES,
};

use super::bare::{Bare, SECONDS, Wanted, each, end, ran, store};
use super::scaled;

/// The largest record that is stored in etcd without a second thought.
const MOST_BYTES: usize = 256 * 1024;

#[tokio::test]
async fn when_all_pods_of_a_large_job_end_at_once_the_record_stays_within_its_bounds() -> Result<()>
{
    let count = scaled(1_200, 10_000);
    let bare = Box::pin(Bare::start()).await?;
    let (tenant, uid) = bare.tenant("large").await?;
    let recorder = AccountingRecorder::start(tenant.client.clone()).await?;
    let all: Vec<_> = (0..count)
        .map(|number| Wanted {
            number,
            job: "node".to_owned(),
            restart: 0,
            requests: json!({"nvidia.com/gpu": "8"}),
            status: ran(0, ""),
        })
        .collect();
    each(&all, |wanted| store(&tenant, ("large", &uid), wanted)).await?;
    bare.open(count).await?;
    each(&all, |wanted| end(&tenant, "large", wanted)).await?;
    let status = bare.ends(&tenant, "large", "Complete").await?;
    let succeeded = PodCounts { succeeded: count as u64, ..PodCounts::default() };
    ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
    let expected = count as u64 * 8 * u64::from(SECONDS);
    ensure!(status.totals.gpu_seconds == expected, "{} GPU seconds", status.totals.gpu_seconds);
    recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
}

/// 30 replicated jobs, 200 attempts, 20 resources, 100 exit codes, and failures that have much to say in long letters.
fn kinds() -> Vec<Wanted> {
    let message = "ü🦀".repeat(400);
    let kind = |number: usize| Wanted {
        number,
        job: format!("job-{:02}", number % 30),
        restart: number % 200,
        requests: json!({
            "cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1",
            format!("e2e.trainjob.dev/resource-{:02}", number % 17): "3",
        }),
        status: ran(1 + number % 100, &message),
    };
    (0..600).map(kind).collect()
}

#[tokio::test]
async fn a_record_of_more_kinds_of_pods_than_it_has_room_for_is_stored_within_its_bounds()
-> Result<()> {
    let bare = Box::pin(Bare::start()).await?;
    let (tenant, uid) = bare.tenant("kinds").await?;
    let recorder = AccountingRecorder::start(tenant.client.clone()).await?;
    let all = kinds();
    each(&all, |wanted| store(&tenant, ("kinds", &uid), wanted)).await?;
    bare.open(all.len()).await?;
    each(&all, |wanted| end(&tenant, "kinds", wanted)).await?;
    let status = bare.ends(&tenant, "kinds", "Failed").await?;
    let failed = PodCounts { failed: 600, ..PodCounts::default() };
    ensure!(status.totals.pods == failed && status.totals.restarts == 199, "{:#?}", status.totals);
    ensure!(status.totals.gpu_seconds == 600 * u64::from(SECONDS), "{:#?}", status.totals);
    ensure!(reason(&status, "Exact") == Some("TooManyResources"), "{:#?}", status.conditions);
    // The bounds are reached, and the API server takes such a record.
    ensure!(status.replicated_jobs.len() == NAMES + 1, "{}", status.replicated_jobs.len());
    ensure!(status.exit_codes.len() == NAMES + 1, "{:?}", status.exit_codes);
    ensure!(status.exit_codes.values().sum::<u64>() == 600, "{:?}", status.exit_codes);
    ensure!(status.first_failures.len() == FAILURES, "{}", status.first_failures.len());
    ensure!(status.totals.seconds.len() == RESOURCES, "{:?}", status.totals.seconds);
    ensure!(status.causes.len() == ATTEMPTS, "{:?}", status.causes);
    let longest = status.first_failures.iter().map(|it| it.message.chars().count()).max();
    ensure!(longest == Some(MESSAGE), "{longest:?} letters");
    let record = records(&tenant, "kinds").await?.pop().context("there is no record")?;
    let bytes = serde_json::to_vec(&record)?.len();
    ensure!(bytes < MOST_BYTES, "{bytes} bytes");
    recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
}
