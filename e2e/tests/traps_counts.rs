//! Traps 13 and 15: what a cluster is left with after much has happened, and whether the numbers
//! about it are true (`docs/semantics.md`, §7).

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES, FAILS, Operation, PATIENCE, Pool, RUNS, stays};
use e2e::until::until_ok;
use futures::future::try_join_all;
use kube::api::ListParams;
use serde_json::json;

/// Runs a test in a box to itself, with an operator.
async fn test(prefix: &str, story: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    static POOL: Pool = Pool::new();
    POOL.test(prefix, async |tenant| {
        tenant.world.start_operator().await?;
        story(tenant).await
    })
    .await
}

// Trap 13: a job that fails for hours.

/// Long enough for a dozen tries: the first come within seconds.
const HOURS: Duration = Duration::from_secs(25);

#[tokio::test]
async fn a_job_that_cannot_be_made_is_told_about_once_and_written_no_more_often() -> Result<()> {
    test("denied", async |tenant| {
        let denial = tenant.deny(Operation::Create).await?;
        tenant.create("job", RUNS, json!({})).await?;
        tenant.tells("job", "TrainJobResourcesCreationFailed").await?;
        let told = tenant.jobs.get("job").await?;
        stays("what is known is not said again", HOURS, async || {
            let job = tenant.jobs.get("job").await?;
            let version = |job: &trainjob_api::TrainJob| job.metadata.resource_version.clone();
            ensure!(version(&job) == version(&told), "its status was written: {:?}", job.status);
            let events = tenant.events.list(&ListParams::default()).await?.items.len();
            ensure!(events == 1, "{events} events");
            Ok(())
        })
        .await?;
        let tries = tenant.requests("create", "jobsets", "")?.len()
            + tenant.requests("create", "jobsets", "job")?.len();
        ensure!((5..=15).contains(&tries), "{tries} tries in {HOURS:?}");
        denial.lift().await?;
        tenant.runs("job").await?;
        Ok(())
    })
    .await
}

// Trap 15: counters, and the number of series.

/// What `/metrics` says, by series.
async fn metrics(tenant: &Tenant<'_>) -> Result<BTreeMap<String, f64>> {
    let text = tenant.world.metrics().await?;
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').context("a sample has a value")?;
            Ok((series.to_owned(), value.parse()?))
        })
        .collect()
}

/// How many of each kind of life there are.
const LIVES: usize = 20;

#[tokio::test]
async fn counters_are_the_sums_of_outcomes_and_jobs_leave_no_series_behind() -> Result<()> {
    test("counted", async |tenant| {
        let before = metrics(tenant).await?;
        ensure!(before.values().all(|value| *value == 0.0), "counted before: {before:?}");
        let lives = [
            ("completes", COMPLETES, json!({"ttlSecondsAfterFinished": 1})),
            ("fails", FAILS, json!({"ttlSecondsAfterFinished": 0})),
            ("stopped", RUNS, json!({"activeDeadlineSeconds": 2, "ttlSecondsAfterFinished": 1})),
            ("stays", RUNS, json!({"activeDeadlineSeconds": 3})),
        ];
        for (kind, runtime, spec) in &lives {
            let create = |number| {
                let (name, spec) = (format!("{kind}-{number}"), spec.clone());
                async move { tenant.create(&name, runtime, spec).await }
            };
            try_join_all((0..LIVES).map(create)).await?;
        }
        until_ok("all but those without a TTL are gone", PATIENCE * 2, || async {
            let left = tenant.jobs.list(&ListParams::default()).await?.items.len();
            ensure!(left == LIVES, "{left} are left");
            Ok(())
        })
        .await?;
        for number in 0..LIVES {
            tenant.released(&format!("stays-{number}")).await?;
        }
        let after = until_ok("all releases are confirmed", PATIENCE, || async {
            let after = metrics(tenant).await?;
            let released = after.get("trainjob_release_latency_seconds_count");
            ensure!(released == Some(&count(2 * LIVES)), "{released:?} are released");
            Ok(after)
        })
        .await?;
        for (series, expected) in [
            ("trainjob_ttl_deletions_total{outcome=\"complete\"}", LIVES),
            ("trainjob_ttl_deletions_total{outcome=\"failed\"}", LIVES),
            ("trainjob_ttl_deletions_total{outcome=\"deadline_exceeded\"}", LIVES),
            ("trainjob_ttl_deletion_latency_seconds_count", 3 * LIVES),
            ("trainjob_deadline_exceeded_total", 2 * LIVES),
            ("trainjob_deadline_enforcement_latency_seconds_count", 2 * LIVES),
        ] {
            ensure!(after.get(series) == Some(&count(expected)), "{series}: {after:#?}");
        }
        let series = |metrics: &BTreeMap<String, f64>| metrics.keys().cloned().collect::<Vec<_>>();
        ensure!(series(&before) == series(&after), "other series than before");
        Ok(())
    })
    .await
}

fn count(of: usize) -> f64 {
    u32::try_from(of).map_or(f64::NAN, f64::from)
}
