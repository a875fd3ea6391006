//! Clocks that are wrong: the operator's own, and that of the API server (`docs/semantics.md`, §5).
//!
//! Each test has a box to itself, with a proxy between it and the operator.

mod times;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::{conditions_of, created_at, time_until};
use e2e::fixtures::{COMPLETES, PATIENCE, POOL, RUNS, Tenant, consistently};
use e2e::operator::OperatorOptions;
use e2e::proxy::{Proxy, Scope};
use e2e::recorder::Recorder;
use e2e::shifted_clock::ShiftedClock;
use e2e::until::until_ok;
use serde_json::json;
use trainjob_api::conditions::{FAILED, SUSPENDED, find_true};

use times::Times;

const HOUR: i64 = 3_600;

/// Time enough for a job to run before it.
const DEADLINE: i64 = 20;

const TTL: i64 = 2;

/// What the operator's metrics say of this one.
async fn metric(tenant: &Tenant<'_>, name: &str) -> Result<f64> {
    let page = tenant.world.metrics().await?;
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(value.with_context(|| format!("there is no {name}"))?.parse()?)
}

/// Sees that the operator has noticed so many jumps of the API server's clock.
async fn has_jumped(tenant: &Tenant<'_>, times: f64) -> Result<()> {
    let jumps = metric(tenant, "trainjob_operator_clock_jumps_total").await?;
    ensure!((jumps - times).abs() < 0.5, "it is said to have jumped {jumps} times");
    Ok(())
}

/// Sees that the operator notices how far its own clock is off, and so that it is.
async fn is_off_by(tenant: &Tenant<'_>, seconds: i64) -> Result<()> {
    until_ok(format!("the operator's clock is {seconds} s off"), PATIENCE, || async {
        let ahead = metric(tenant, "trainjob_operator_clock_offset_seconds").await?;
        // How far the API server's clock is ahead.
        #[expect(clippy::cast_precision_loss, reason = "an hour")]
        let error = (ahead + seconds as f64).abs();
        ensure!(error < 2.0, "the API server's clock seems to be {ahead} s ahead");
        Ok(())
    })
    .await
}

/// Creates a job with a deadline, one with a TTL and one that is suspended, whose names end in `round`.
async fn begin(tenant: &Tenant<'_>, round: &str) -> Result<()> {
    let deadline = json!({"activeDeadlineSeconds": DEADLINE});
    tenant.create(&format!("due-{round}"), RUNS, deadline).await?;
    let ttl = json!({"ttlSecondsAfterFinished": TTL});
    tenant.create(&format!("leaves-{round}"), COMPLETES, ttl).await?;
    tenant.create(&format!("suspended-{round}"), RUNS, json!({"suspend": true})).await?;
    Ok(())
}

async fn end(tenant: &Tenant<'_>, round: &str) -> Result<()> {
    let due = format!("due-{round}");
    tenant.becomes(&format!("suspended-{round}"), SUSPENDED).await?;
    tenant.fails_by_deadline(&due).await?;
    tenant.released(&due).await?;
    tenant.gone(&format!("leaves-{round}")).await
}

#[tokio::test]
async fn own_clock_that_is_an_hour_off_or_jumps_makes_nothing_early_late_or_wrong() -> Result<()> {
    POOL.test("own-clock", async |tenant| {
        let world = tenant.world;
        let recorder = Recorder::start(tenant.client.clone()).await?;
        let proxy = Proxy::start(&world.cluster, Scope::Cluster).await?;
        let clock = ShiftedClock::new(world.cluster.folder())?;
        let launch = || async {
            let options =
                OperatorOptions { env: clock.environment(), ..OperatorOptions::default() };
            world.launch(Some(&proxy), options).await?.wait_ready().await
        };

        clock.set(-HOUR)?;
        launch().await?;
        is_off_by(tenant, -HOUR).await?;
        begin(tenant, "behind").await?;
        end(tenant, "behind").await?;

        // While jobs wait for their time.
        begin(tenant, "jump").await?;
        tenant.runs("due-jump").await?;
        clock.set(HOUR)?;
        is_off_by(tenant, HOUR).await?;
        end(tenant, "jump").await?;

        proxy.process(2);
        launch().await?;
        is_off_by(tenant, HOUR).await?;
        begin(tenant, "ahead").await?;
        end(tenant, "ahead").await?;

        has_jumped(tenant, 0.0).await?;
        recorder.caught_up_in(&tenant.namespace).await?;
        let times = Times::of(recorder.changes(Some(&tenant.namespace)), proxy.requests())?;
        times.print("its own clock an hour off");
        times.check(3, 3)
    })
    .await
}

/// The deadline of a job that a jump comes before, and a pause that reaches well beyond it.
const DEADLINE_IN_PAUSE: i64 = 12;
const PAUSE: u64 = 40;

/// More than what counts as a jump.
const JUMP: i64 = 90;

#[tokio::test]
async fn what_acts_by_time_pauses_after_a_jump_of_the_api_servers_clock_and_then_goes_on()
-> Result<()> {
    POOL.test("jump", async |tenant| {
        let world = tenant.world;
        let proxy = Proxy::start(&world.cluster, Scope::Cluster).await?;
        let config_yaml = format!("lifecycle: {{clockJumpPauseSeconds: {PAUSE}}}\n");
        let options = OperatorOptions { config_yaml, ..OperatorOptions::default() };
        world.launch(Some(&proxy), options).await?.wait_ready().await?;

        let deadline = json!({"activeDeadlineSeconds": DEADLINE_IN_PAUSE});
        let due = tenant.create("due", RUNS, deadline).await?;
        tenant.has_job_set("due").await?;
        proxy.shift_dates(JUMP);
        paused(tenant, true).await?;
        has_jumped(tenant, 1.0).await?;

        // Its deadline passes, and nothing comes of it as long as the pause lasts.
        let rest = time_until(created_at(&due).plus(DEADLINE_IN_PAUSE)) + Duration::from_secs(2);
        consistently("a deadline that is due in the pause", rest, async || {
            let job = tenant.jobs.get("due").await?;
            let failed = find_true(conditions_of(&job), FAILED);
            ensure!(failed.is_none(), "its job has failed");
            Ok(())
        })
        .await?;
        paused(tenant, true).await.context("the pause was too short for the test")?;
        // What needs no time goes on.
        tenant.create("new", RUNS, json!({})).await?;
        tenant.has_job_set("new").await?;

        paused(tenant, false).await?;
        tenant.becomes("due", FAILED).await?;
        tenant.released("due").await
    })
    .await
}

/// Waits until what acts by time pauses, or does no longer, as the alert `TrainJobTimePaused` asks.
async fn paused(tenant: &Tenant<'_>, expected: bool) -> Result<()> {
    until_ok(format!("time is paused: {expected}"), PATIENCE, || async {
        let paused = metric(tenant, "trainjob_operator_time_paused").await? > 0.0;
        ensure!(paused == expected, "it is not so");
        Ok(())
    })
    .await
}
