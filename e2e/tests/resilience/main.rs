//! What the operator needs goes away, or was never there: it says so once, waits, and goes on by
//! itself. And how it stops.

mod missing;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::Cluster;
use e2e::component::Component;
use e2e::fixtures::status::{
    conditions_of, created_at, finished_at, is_failed_by_deadline, time_until,
};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES, LATE, PATIENCE, POOL, RUNS, consistently};
use e2e::operator::Operator;
use e2e::proxy::{Fault, Proxy, Scope};
use e2e::until::{until, until_ok};
use rustix::process::Signal;
use serde_json::{Value, json};
use trainjob_api::conditions::{COMPLETE, FAILED};

/// How long a test looks on while something is missing: several tries of the operator.
const WINDOW: Duration = Duration::from_secs(4);

/// Runs a test in a box to itself, without an operator.
async fn test(prefix: &str, body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    POOL.test(prefix, body).await
}

/// Everything else that talks to the API server. It sleeps during an outage, or it would take its
/// time to come back, and the tests with it.
const OTHERS: [Component; 4] =
    [Component::ControllerManager, Component::Scheduler, Component::JobSet, Component::Kwok];

/// Kills the API server.
fn begin_outage(cluster: &Cluster) -> Result<()> {
    OTHERS.into_iter().try_for_each(|other| cluster.pause(other))?;
    cluster.stop_apiserver();
    Ok(())
}

/// Starts the API server again. The operator sleeps until that is ready, too: it would complain of refusals by one that
/// does not know roles and kinds yet.
async fn end_outage(cluster: &Cluster, operator: &Operator) -> Result<()> {
    operator.process().pause()?;
    cluster.start_apiserver().await?;
    operator.process().signal(Signal::CONT)?;
    OTHERS.into_iter().try_for_each(|other| cluster.resume(other))
}

/// What it has logged at this level, as `message` and all other fields.
fn logged(operator: &Operator, level: &str) -> Result<Vec<Value>> {
    let log = operator.log()?;
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(lines.filter(|line| line.get("level") == Some(&json!(level))).collect())
}

fn message(line: &Value) -> &str {
    line.get("message").and_then(Value::as_str).unwrap_or_default()
}

/// The code and the text that the health server answers with.
fn health(operator: &Operator, path: &str) -> Result<(u16, String)> {
    let url = operator.health_url();
    let mut stream = TcpStream::connect(url.trim_start_matches("http://"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let code = answer.split(' ').nth(1).context("no HTTP")?.parse()?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    Ok((code, body.to_owned()))
}

/// Whether a status write says that its job has failed.
fn says_failed(sent: &Value) -> bool {
    let conditions = sent.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|all| all.iter().any(|it| it.get("type") == Some(&json!(FAILED))))
}

/// Waits until it has complained, and returns the first complaint.
async fn complains(operator: &Operator) -> Result<String> {
    until("the operator complains", PATIENCE, || async {
        logged(operator, "ERROR").ok()?.first().map(|line| message(line).to_owned())
    })
    .await
}

/// Sees that it waits: alive, not ready, and with nothing more to say than so many complaints.
async fn waits_quietly(operator: &Operator, complaints: usize) -> Result<()> {
    consistently("the operator waits", WINDOW, async || {
        let said = [logged(operator, "ERROR")?, logged(operator, "WARN")?].concat();
        let about_jobs: Vec<_> = said.iter().filter(|it| !is_about_the_configuration(it)).collect();
        ensure!(about_jobs.len() == complaints, "it said {about_jobs:#?}");
        ensure!(health(operator, "/healthz")?.0 == 200, "it does not serve");
        Ok(())
    })
    .await
}

/// Said once at the start of every operator.
fn is_about_the_configuration(line: &Value) -> bool {
    message(line).contains("without effect in this release")
}

#[tokio::test]
async fn unreachable_api_server_at_start_is_logged_once_and_waited_for() -> Result<()> {
    test("late", async |tenant| {
        let cluster = &tenant.world.cluster;
        tenant.create("job", RUNS, json!({})).await?;
        begin_outage(cluster)?;
        let operator = tenant.world.launch_operator("").await?;
        let complaint = complains(&operator).await?;
        waits_quietly(&operator, 1).await?;
        let (code, missing) = health(&operator, "/readyz")?;
        ensure!(code == 503 && missing.contains("TrainJob"), "it is ready: {code} {missing}");

        end_outage(cluster, &operator).await?;
        operator.wait_ready().await?;
        tenant.has_job_set("job").await?;
        let said = logged(&operator, "ERROR")?;
        ensure!(said.len() == 1, "after \"{complaint}\" it said more: {said:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn api_server_outage_is_logged_once_and_due_work_is_done_afterwards() -> Result<()> {
    test("away", async |tenant| {
        let cluster = &tenant.world.cluster;
        let operator = tenant.world.start_operator().await?;
        let stopped = tenant.create("stopped", RUNS, json!({"activeDeadlineSeconds": 7})).await?;
        tenant.create("expired", COMPLETES, json!({"ttlSecondsAfterFinished": 4})).await?;
        tenant.runs("stopped").await?;
        let expired = tenant.becomes("expired", COMPLETE).await?;
        let due = created_at(&stopped).plus(7).max(finished_at(&expired)?.plus(4));

        begin_outage(cluster)?;
        complains(&operator).await?;
        let outage = time_until(due.plus(2)).max(WINDOW);
        consistently("it says so once", outage, async || {
            let said = [logged(&operator, "ERROR")?, logged(&operator, "WARN")?].concat();
            let said: Vec<_> = said.iter().filter(|it| !is_about_the_configuration(it)).collect();
            ensure!(said.len() == 1, "it said {said:#?}");
            Ok(())
        })
        .await?;
        ensure!(health(&operator, "/healthz")?.0 == 200, "it does not serve");

        end_outage(cluster, &operator).await?;
        tenant.gone("expired").await?;
        let job = tenant.becomes("stopped", FAILED).await?;
        ensure!(is_failed_by_deadline(&job), "{:?}", conditions_of(&job));
        ensure!(finished_at(&job)? >= created_at(&job).plus(7), "it was stopped early");
        tenant.released("stopped").await?;
        tenant.create("next", RUNS, json!({})).await?;
        tenant.has_job_set("next").await?;
        let said = logged(&operator, "ERROR")?;
        ensure!(said.len() == 1, "it said more: {said:#?}");
        let back = logged(&operator, "INFO")?;
        let back = back.iter().filter(|line| message(line).contains("again")).count();
        ensure!(back == 1, "that it is over was said {back} times");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_api_server_that_hangs_delays_a_deadline_and_loses_nothing() -> Result<()> {
    test("hanging", async |tenant| {
        let cluster = &tenant.world.cluster;
        tenant.world.start_operator().await?;
        let job = tenant.create("job", RUNS, json!({"activeDeadlineSeconds": 5})).await?;
        tenant.runs("job").await?;
        cluster.pause(Component::ApiServer)?;
        // Longer than the operator waits for an answer: what it sent is carried out late, and again.
        let due = created_at(&job).plus(5);
        let outage = time_until(due.plus(17));
        consistently("nothing can happen", outage, async || {
            cluster.process(Component::ApiServer).map(|_| ())
        })
        .await?;
        cluster.resume(Component::ApiServer)?;
        let job = tenant.becomes("job", FAILED).await?;
        ensure!(is_failed_by_deadline(&job), "{:?}", conditions_of(&job));
        ensure!(finished_at(&job)? >= due, "it was stopped early");
        tenant.released("job").await?;
        let writes = tenant.requests("patch", "trainjobs", "job")?;
        let ends = writes.iter().filter(|it| it.code() == 200 && says_failed(&it.sent));
        ensure!(ends.count() <= 2, "its end was stored again and again: {writes:#?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_stopping_operator_is_unready_first_begins_nothing_finishes_its_work_and_exits_with_0()
-> Result<()> {
    test("stopping", async |tenant| {
        let proxy = Proxy::start(&tenant.world.cluster, Scope::Cluster).await?;
        let operator = tenant.world.launch_operator_through(&proxy, "").await?;
        operator.wait_ready().await?;
        ensure!(health(&operator, "/readyz")?.0 == 200, "it is not ready");
        // A creation is under way for as long as its reply is held.
        let held = proxy.inject(
            |call| (call.verb, &*call.resource) == ("create", "jobsets"),
            1..=1,
            Fault::HoldReply,
        );
        tenant.create("job", RUNS, json!({})).await?;
        held.reached().await?;

        operator.sigterm()?;
        until_ok("it is not ready any more", Duration::from_secs(10), || async {
            let (code, _) = health(&operator, "/readyz")?;
            ensure!(code == 503, "/readyz says {code}");
            Ok(())
        })
        .await?;
        ensure!(health(&operator, "/healthz")?.0 == 200, "it is not alive");
        tenant.create("new", RUNS, json!({})).await?;
        // Shorter than the operator waits for a reply.
        consistently("its work is under way", Duration::from_secs(2), async || {
            ensure!(operator.process().ended().is_none(), "it did not finish its work");
            Ok(())
        })
        .await?;
        held.release();
        let status = operator.wait(PATIENCE).await?;
        ensure!(status.code() == Some(0), "{status}");
        let begun = tenant.config_maps.get_opt("new-runtime-snapshot").await?;
        ensure!(begun.is_none(), "it began new work");
        let mut made = proxy.requests();
        made.retain(|it| it.verb == "create" && it.resource == "jobsets");
        // Whoever does not wait for a reply is answered nothing.
        let answers: Vec<_> = made.iter().map(|it| it.answer.code).collect();
        ensure!(answers == [Some(201)], "what was under way was not finished: {answers:?}");

        tenant.world.start_operator().await?;
        tenant.has_job_set("job").await?;
        tenant.has_job_set("new").await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_idle_operator_stops_at_once() -> Result<()> {
    test("idle", async |tenant| {
        let operator = tenant.world.start_operator().await?;
        operator.sigterm()?;
        let status = operator.wait(Duration::from_secs(u64::try_from(LATE)?)).await?;
        ensure!(status.code() == Some(0), "{status}");
        Ok(())
    })
    .await
}
