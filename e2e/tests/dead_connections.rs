//! Connections that are dead and do not say so: a watch that is silent for ever, a call whose request or
//! reply is lost, a path on which nothing passes. A dead path may not blind the operator for more than ten seconds, nor
//! hold up a deadline for longer once the API server answers again, and a watch that is silent although its path is alive
//! not for more than 90 (`docs/semantics.md`, §6).
//!
//! Each test has a box to itself, with a proxy between it and the operator.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use e2e::fixtures::status::{created_at, finished_at, time_until};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES, POOL, RUNS};
use e2e::proxy::{Call, Fault, Injection, Proxy};
use e2e::until::until_ok;
use futures::future::try_join_all;
use invariants::{Millis, Request};
use serde_json::json;
use trainjob_api::conditions::{COMPLETE, FAILED};
use trainjob_api::time::Timestamp;

/// How long a connection may be dead before it is replaced, in milliseconds, with room for a machine that
/// builds something else at the same time.
const REPLACED_WITHIN: Millis = 10_000 + 2_000;

/// How long a watch may be silent before it is replaced, in milliseconds.
const SILENT_FOR: Millis = 90_000;

/// Runs a test in a box to itself, with an operator behind a proxy.
async fn test(
    prefix: &str,
    body: impl AsyncFnOnce(&Tenant<'_>, &Proxy) -> Result<()>,
) -> Result<()> {
    POOL.test_behind_proxy(prefix, body).await
}

fn now() -> Result<Millis> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(Millis::try_from(now.as_millis())?)
}

// A watch that is silent for ever.

/// Freezes the next watch of a kind, from its beginning; returns when it was frozen.
async fn freeze(proxy: &Proxy, resource: &'static str) -> Result<Millis> {
    let watch = move |call: &Call| call.is_watch() && call.resource == resource;
    let frozen = proxy.inject(watch, 1..=1, Fault::FreezeWatch);
    frozen.freeze();
    proxy.end_watches();
    frozen.reached().await?;
    now()
}

/// When the watch of a kind that ended or was frozen at `since` was replaced.
fn replaced(proxy: &Proxy, resource: &str, since: Millis) -> Result<Millis> {
    let requests = proxy.requests();
    let next = requests.iter().find(|it| {
        it.resource == resource && matches!(&*it.verb, "watch" | "list") && it.sent > since
    });
    Ok(next.with_context(|| format!("the watch of {resource} was not replaced"))?.sent)
}

/// Waits until the watch of a kind that was frozen at `since` is replaced.
async fn replaced_in_time(proxy: &Proxy, resource: &str, since: Millis) -> Result<Millis> {
    let patience = Duration::from_millis(SILENT_FOR.unsigned_abs());
    until_ok("the watch is replaced", patience, async || replaced(proxy, resource, since)).await
}

/// When the first request was sent that `matches`.
fn first_sent(proxy: &Proxy, matches: impl Fn(&Request) -> bool) -> Result<Millis> {
    Ok(proxy.requests().iter().find(|it| matches(it)).context("never sent")?.sent)
}

#[tokio::test]
async fn jobs_created_while_their_watch_is_frozen_run_and_are_ended_in_time_once_that_is_replaced()
-> Result<()> {
    test("frozen-jobs", async |tenant, proxy| {
        let frozen = freeze(proxy, "trainjobs").await?;
        tenant.create("job", RUNS, json!({})).await?;
        tenant.create("due", RUNS, json!({"activeDeadlineSeconds": 1})).await?;
        let replaced = replaced_in_time(proxy, "trainjobs", frozen).await?;
        tenant.has_job_set("job").await?;
        let creation = first_sent(proxy, |it| it.verb == "create" && it.resource == "jobsets")?;
        ensure!(creation >= replaced, "the watch was not frozen");

        let due = tenant.becomes("due", FAILED).await?;
        let failed = finished_at(&due)?;
        let late = failed.0 * 1_000 - replaced;
        ensure!(failed >= created_at(&due).plus(1), "its deadline was early");
        ensure!(late <= REPLACED_WITHIN, "its deadline was {late} ms late");
        tenant.released("due").await
    })
    .await
}

#[tokio::test]
async fn a_job_that_completes_while_the_watch_of_jobsets_is_frozen_is_complete_once_that_is_replaced()
-> Result<()> {
    test("frozen-jobsets", async |tenant, proxy| {
        let frozen = freeze(proxy, "jobsets").await?;
        tenant.create("job", COMPLETES, json!({"activeDeadlineSeconds": 600})).await?;
        let replaced = replaced_in_time(proxy, "jobsets", frozen).await?;
        let job = tenant.becomes("job", COMPLETE).await?;
        finished_at(&job)?;
        let completes = |it: &Request| it.subresource == "status" && it.sent >= replaced;
        first_sent(proxy, completes).context("the watch was not frozen")?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_deadline_is_enforced_on_time_while_all_watches_are_frozen() -> Result<()> {
    test("frozen-all", async |tenant, proxy| {
        tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 25})).await?;
        tenant.runs("job").await?;
        let frozen = proxy.inject(Call::is_watch, 1..=usize::MAX, Fault::FreezeWatch);
        frozen.freeze();
        proxy.end_watches();
        tenant.fails_by_deadline("job").await?;
        tenant.job_set_gone("job").await?;
        ensure!(frozen.is_reached(), "no watch was frozen");
        frozen.remove();
        tenant.released("job").await
    })
    .await
}

// A path that is dead.

/// So many jobs at once leave more connections in the pool than a deadline may try one after the other.
const NEIGHBOURS: usize = 12;

#[tokio::test]
async fn a_lone_deadline_after_a_silent_break_is_ten_seconds_late_at_most() -> Result<()> {
    test("broken-path", async |tenant, proxy| {
        let neighbours = (0..NEIGHBOURS).map(|number| async move {
            let name = format!("neighbour-{number}");
            tenant.create(&name, RUNS, json!({})).await?;
            tenant.has_job_set(&name).await
        });
        try_join_all(neighbours).await?;
        // The operator closes connections that nobody has used for half a minute.
        let seconds = 20;
        let job = tenant.create("job", RUNS, json!({"activeDeadlineSeconds": seconds})).await?;
        tenant.runs("job").await?;
        let due = created_at(&job).plus(seconds);
        // The system has no time to notice before the deadline meets it.
        let before = time_until(due).saturating_sub(Duration::from_millis(500));
        tokio::time::sleep(before).await;
        proxy.break_paths().await;
        tenant.becomes("job", FAILED).await?;
        tenant.released("job").await?;

        let requests = proxy.requests();
        let answered = requests.iter().filter(|it| it.name == "job" && it.took_effect());
        let deletions = answered.filter(|it| it.verb == "delete" && it.resource == "jobsets");
        let end = deletions.map(|it| it.sent).max().context("its JobSet was not deleted")?;
        let late = end - due.0 * 1_000;
        ensure!((0..=REPLACED_WITHIN).contains(&late), "enforced {late} ms after it was due");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_created_after_a_silent_break_runs_once_watches_are_replaced() -> Result<()> {
    test("broken-watch", async |tenant, proxy| {
        proxy.break_paths().await;
        let broken = now()?;
        tenant.create("job", RUNS, json!({})).await?;
        tenant.has_job_set("job").await?;
        let took = replaced(proxy, "trainjobs", broken)? - broken;
        ensure!(took <= REPLACED_WITHIN, "replaced after {took} ms");
        Ok(())
    })
    .await
}

// A call whose request or reply is lost.

/// A job with a deadline, and the calls about it that are lost.
struct Lost {
    name: &'static str,
    /// Seconds until its deadline.
    deadline: i64,
    matches: fn(&Call) -> bool,
    /// Whether it gets so far that it has a JobSet.
    runs: bool,
}

/// What is lost when a connection dies before the deadline, and when it dies at each of the two steps of
/// enforcing it.
const LOST: [Lost; 4] = [
    Lost { name: "unborn", deadline: 3, matches: Call::is_write, runs: false },
    Lost {
        name: "half-made",
        deadline: 3,
        matches: |call| call.resource == "jobsets",
        runs: false,
    },
    Lost { name: "unmarked", deadline: 15, matches: Call::marks_failed, runs: true },
    Lost { name: "unreleased", deadline: 15, matches: |call| call.verb == "delete", runs: true },
];

#[tokio::test]
async fn requests_that_are_lost_hold_up_no_deadline_once_the_api_server_answers() -> Result<()> {
    lost("lost-requests", Fault::HoldRequest).await
}

#[tokio::test]
async fn replies_that_are_lost_hold_up_no_deadline_once_the_api_server_answers() -> Result<()> {
    lost("lost-replies", Fault::HoldReply).await
}

async fn lost(prefix: &str, fault: Fault) -> Result<()> {
    test(prefix, async |tenant, proxy| {
        try_join_all(LOST.iter().map(|lost| async move {
            let enforced = enforced(tenant, proxy, lost, fault).await;
            enforced.with_context(|| format!("the job {}", lost.name))
        }))
        .await?;
        Ok(())
    })
    .await
}

/// Loses the calls of one job until its deadline is due and one is lost, and sees that the deadline is
/// enforced in time after that.
async fn enforced(tenant: &Tenant<'_>, proxy: &Proxy, lost: &Lost, fault: Fault) -> Result<()> {
    let Lost { name, deadline, matches, runs } = *lost;
    let about = move |call: &Call| call.name.starts_with(name) && !call.is_event() && matches(call);
    let dead = proxy.inject(about, 1..=usize::MAX, fault);
    let job = tenant.create(name, RUNS, json!({"activeDeadlineSeconds": deadline})).await?;
    if runs {
        tenant.runs(name).await?;
    }
    let due = created_at(&job).plus(deadline);
    let healed = heals(&dead, due).await?;

    let job = tenant.becomes(name, FAILED).await?;
    ensure!(finished_at(&job)? >= due, "it failed before it was due, at {due}");
    tenant.released(name).await?;
    let requests = proxy.requests();
    let done = requests.iter().filter(|it| it.name == name && it.took_effect());
    let steps = done.filter(|it| it.subresource == "status" || it.verb == "delete");
    let end = steps.map(|it| it.sent).max().context("nothing was done")?;
    ensure!(end - healed <= REPLACED_WITHIN, "enforced {} ms later", end - healed);
    Ok(())
}

/// Lets the API server answer again once the deadline is due and a call is lost; returns when that was.
async fn heals(dead: &Injection, due: Timestamp) -> Result<Millis> {
    dead.reached().await?;
    // Only a clock says that a deadline is due when nothing comes of it.
    tokio::time::sleep(time_until(due)).await;
    dead.cease();
    now()
}
