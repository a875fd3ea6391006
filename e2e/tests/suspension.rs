//! Trap 7: suspension and the deadline, under both clocks (`docs/semantics.md`, D2).
//!
//! Each clock has a box and an operator of its own, which all tests of it share.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::fixtures::shared::Shared;
use e2e::fixtures::status::{
    conditions_of, created_at, finished_at, is_failed_by_deadline, now, on_time, time_until,
};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{LATE, PATIENCE, POOL, PooledBox, RUNS, World, consistently};
use e2e::until::until_ok;
use futures::future::try_join_all;
use kube::ResourceExt as _;
use serde_json::json;
use tokio::time::sleep;
use trainjob_api::TrainJob;
use trainjob_api::conditions::{self, FAILED, SUSPENDED, WAITING};
use trainjob_api::time::Timestamp;

/// How long before a deadline its job is told of it, in seconds; so many that none that fails a job here is told of (D8).
const WARNING: i64 = 3_600;
/// Longer than an operator that is about to do something wrong hesitates.
const WINDOW: Duration = Duration::from_secs(3);
/// The deadline of a job that is to run and to be suspended before it, in seconds.
const TIME_TO_RUN: i64 = 20;
/// The deadline of jobs that are suspended around it, in seconds.
const RACED: i64 = 4;

async fn by_creation(body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    World::shared().await?.test("creation", body).await
}

async fn by_last_resume(body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    static SHARED: Shared<PooledBox> = Shared::new();
    let world = SHARED
        .get(async || {
            let world = POOL.take().await?;
            let lifecycle =
                format!("{{deadlineClock: LastResume, deadlineWarningSeconds: {WARNING}}}");
            world.start_operator_with(&format!("lifecycle: {lifecycle}")).await?;
            Ok(world)
        })
        .await?;
    world.test("resume", body).await
}

async fn suspend(tenant: &Tenant<'_>, name: &str, suspend: bool) -> Result<TrainJob> {
    tenant.patch(name, &json!({"spec": {"suspend": suspend}})).await
}

/// When the clock of the last resume started, as the job itself says.
fn resumed_at(job: &TrainJob) -> Result<Timestamp> {
    let suspended = conditions::find(conditions_of(job), SUSPENDED).context("never suspended")?;
    ensure!(suspended.status == "False", "it is suspended");
    Ok(Timestamp::from(&suspended.last_transition_time))
}

/// Waits until the deadline has failed a job that was resumed, and sees that it counted from there.
async fn fails_after_its_resume(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    let job = tenant.becomes(name, FAILED).await?;
    ensure!(is_failed_by_deadline(&job), "{:?}", conditions_of(&job));
    let seconds = job.spec.active_deadline_seconds.context("it has no deadline")?;
    on_time(resumed_at(&job)?.plus(seconds), finished_at(&job)?)?;
    tenant.released(name).await
}

/// Sees that a job that its deadline has failed stays as it is and gets nothing any more.
async fn stays_failed(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    // A release that took long is still said to be waited for, until it is known.
    let failed = until_ok(format!("{name} waits for nothing"), PATIENCE, || async {
        let job = tenant.jobs.get(name).await?;
        let waits = conditions::find(conditions_of(&job), WAITING);
        ensure!(waits.is_none(), "{waits:?}");
        Ok(job)
    })
    .await?;
    consistently("the job stays stopped", WINDOW, async || {
        let job = tenant.jobs.get(name).await?;
        ensure!(job.status == failed.status, "{:?}", job.status);
        ensure!(tenant.job_sets.get_opt(name).await?.is_none(), "it has a JobSet");
        Ok(())
    })
    .await
}

/// Waits until a suspended job has no running Pod, and its JobSet, if it has one, is suspended.
async fn stands_still(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    until_ok(format!("{name} stands still"), PATIENCE, || async {
        let job_set = tenant.job_sets.get_opt(name).await?;
        let suspended =
            |at: &kube::api::DynamicObject| at.data.pointer("/spec/suspend") == Some(&json!(true));
        ensure!(job_set.as_ref().is_none_or(suspended), "its JobSet is not suspended");
        let running = tenant.running_pods_of(name).await?;
        ensure!(running == 0, "{running} Pods run");
        Ok(())
    })
    .await
}

/// Sees that a job is unfinished until `at` and a little longer.
async fn unfinished_past(tenant: &Tenant<'_>, name: &str, at: Timestamp) -> Result<()> {
    let what = format!("{name} is not stopped");
    consistently(&what, time_until(at) + WINDOW, async || {
        let job = tenant.jobs.get(name).await?;
        ensure!(finished_at(&job).is_err(), "{:?}", conditions_of(&job));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn from_creation_a_job_created_suspended_is_stopped_on_time_and_cannot_be_resumed()
-> Result<()> {
    by_creation(async |tenant| {
        let spec = json!({"suspend": true, "activeDeadlineSeconds": 3});
        tenant.create("job", RUNS, spec).await?;
        tenant.fails_by_deadline("job").await?;
        tenant.released("job").await?;
        suspend(tenant, "job", false).await?;
        stays_failed(tenant, "job").await
    })
    .await
}

#[tokio::test]
async fn from_creation_a_job_suspended_while_it_runs_is_stopped_on_time() -> Result<()> {
    by_creation(async |tenant| {
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": TIME_TO_RUN})).await?;
        tenant.runs("job").await?;
        suspend(tenant, "job", true).await?;
        stands_still(tenant, "job").await?;
        tenant.fails_by_deadline("job").await?;
        tenant.released("job").await?;
        suspend(tenant, "job", false).await?;
        stays_failed(tenant, "job").await
    })
    .await
}

#[tokio::test]
async fn from_the_last_resume_a_job_created_suspended_is_stopped_only_after_it_was_resumed()
-> Result<()> {
    by_last_resume(async |tenant| {
        let spec = json!({"suspend": true, "activeDeadlineSeconds": 2});
        let job = tenant.create("job", RUNS, spec).await?;
        unfinished_past(tenant, "job", created_at(&job).plus(2)).await?;
        suspend(tenant, "job", false).await?;
        fails_after_its_resume(tenant, "job").await
    })
    .await
}

#[tokio::test]
async fn from_the_last_resume_a_job_suspended_while_it_runs_has_all_its_time_again() -> Result<()> {
    by_last_resume(async |tenant| {
        let spec = json!({"activeDeadlineSeconds": TIME_TO_RUN});
        let job = tenant.create("job", RUNS, spec).await?;
        tenant.runs("job").await?;
        suspend(tenant, "job", true).await?;
        stands_still(tenant, "job").await?;
        unfinished_past(tenant, "job", created_at(&job).plus(TIME_TO_RUN)).await?;
        suspend(tenant, "job", false).await?;
        tenant.runs("job").await?;
        fails_after_its_resume(tenant, "job").await
    })
    .await
}

/// Suspends and resumes a job every second, ten times in all.
async fn toggle(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    for time in 0..10 {
        suspend(tenant, name, time % 2 == 0).await?;
        // The user's own pace.
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

#[tokio::test]
async fn from_creation_a_job_toggled_every_second_is_stopped_on_time() -> Result<()> {
    by_creation(async |tenant| {
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 5})).await?;
        toggle(tenant, "job").await?;
        tenant.fails_by_deadline("job").await?;
        tenant.released("job").await?;
        stays_failed(tenant, "job").await
    })
    .await
}

#[tokio::test]
async fn from_the_last_resume_a_job_toggled_every_second_is_stopped_after_the_last_one()
-> Result<()> {
    by_last_resume(async |tenant| {
        // Longer than it is ever resumed for, shorter than all of it takes.
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 6})).await?;
        toggle(tenant, "job").await?;
        let job = tenant.jobs.get("job").await?;
        ensure!(finished_at(&job).is_err(), "stopped early: {:?}", conditions_of(&job));
        fails_after_its_resume(tenant, "job").await
    })
    .await
}

/// Jobs that are suspended at moments spread around the instant at which their deadline is due.
async fn race(tenant: &Tenant<'_>) -> Result<Vec<String>> {
    let names: Vec<String> = (0..12).map(|number| format!("job-{number:02}")).collect();
    try_join_all(names.iter().enumerate().map(async |(number, name)| {
        let job = tenant.create(name, RUNS, json!({"activeDeadlineSeconds": RACED})).await?;
        let due = std::time::SystemTime::from(created_at(&job).plus(RACED));
        let at = due + Duration::from_millis(50 * number as u64) - Duration::from_millis(300);
        sleep(at.duration_since(std::time::SystemTime::now()).unwrap_or_default()).await;
        suspend(tenant, name, true).await?;
        anyhow::Ok(())
    }))
    .await?;
    Ok(names)
}

#[tokio::test]
async fn from_creation_a_suspension_that_races_the_deadline_never_wins() -> Result<()> {
    by_creation(async |tenant| {
        for name in race(tenant).await? {
            tenant.fails_by_deadline(&name).await?;
            tenant.released(&name).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn from_the_last_resume_a_job_that_is_suspended_in_time_stands_still_and_any_other_fails()
-> Result<()> {
    by_last_resume(async |tenant| {
        let names = race(tenant).await?;
        let created: Vec<_> = tenant.jobs.list(&kube::api::ListParams::default()).await?.items;
        let last = created.iter().map(created_at).max().unwrap_or_else(now);
        consistently(
            "what stands still is not stopped",
            time_until(last.plus(RACED + LATE)) + WINDOW,
            async || {
                let asked = now();
                for job in tenant.jobs.list(&kube::api::ListParams::default()).await? {
                    let failed = finished_at(&job).is_ok();
                    let suspended = conditions::find_true(conditions_of(&job), SUSPENDED);
                    // Which of the two it was is decided at the deadline, and stays.
                    let stands = suspended.is_some() && !failed;
                    let due = created_at(&job).plus(RACED);
                    let settled = asked.since(due) <= LATE || failed || stands;
                    ensure!(settled, "{}: {:?}", job.name_any(), conditions_of(&job));
                }
                Ok(())
            },
        )
        .await?;
        try_join_all(names.iter().map(|name| ends_as_it_must(tenant, name))).await?;
        Ok(())
    })
    .await
}

/// A job that was suspended at its deadline is either failed and released, or stands still and fails
/// once it has been resumed for as long.
async fn ends_as_it_must(tenant: &Tenant<'_>, name: &str) -> Result<()> {
    let job = tenant.jobs.get(name).await?;
    if finished_at(&job).is_ok() {
        ensure!(is_failed_by_deadline(&job), "{:?}", conditions_of(&job));
        on_time(created_at(&job).plus(RACED), finished_at(&job)?)?;
        return tenant.released(name).await;
    }
    stands_still(tenant, name).await?;
    suspend(tenant, name, false).await?;
    fails_after_its_resume(tenant, name).await
}

#[tokio::test]
async fn from_the_last_resume_a_job_is_told_once_of_a_long_deadline_before_it_comes() -> Result<()>
{
    by_last_resume(async |tenant| {
        let seconds = WARNING + 5;
        let spec = json!({"suspend": true, "activeDeadlineSeconds": seconds});
        tenant.create("job", RUNS, spec).await?;
        tenant.becomes("job", SUSPENDED).await?;
        suspend(tenant, "job", false).await?;
        let note = tenant.tells("job", "DeadlineApproaching").await?;
        let job = tenant.jobs.get("job").await?;
        let due = resumed_at(&job)?.plus(seconds);
        ensure!(note.contains(&format!("fails at {due}")), "{note}");
        ensure!(now() >= due.plus(-WARNING), "told too early");
        // News of the job make the operator look at it again.
        tenant.patch("job", &json!({"metadata": {"labels": {"seen": "again"}}})).await?;
        consistently("told once", WINDOW, async || {
            let told = tenant.told("job", "DeadlineApproaching").await?;
            ensure!(told.len() == 1, "{told:#?}");
            Ok(())
        })
        .await
    })
    .await
}
