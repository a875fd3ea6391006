//! Traps 25 and 29: the program is away while jobs are deleted, and it is removed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::accounting::{
    Accounting, Counted, NAMESPACE, SERVICE_ACCOUNT, becomes_final, holds, status,
};
use e2e::apply::apply;
use e2e::fixtures::status::conditions_of;
use e2e::fixtures::{COMPLETES_AFTER, PATIENCE, RUNS, Tenant, runtime};
use e2e::proxy::{Fault, Proxy, Scope};
use e2e::until::{consistently, until_ok};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::conditions;
use trainjob_core::mark::LEASE_BELIEVED;

use super::{SETTINGS, is_held, no_pods, nodes, others_come, run_held, scaled};

/// The Lease has to stand still for a minute, and a Pod waits for four at most.
const SWEPT_WITHIN: Duration = Duration::from_mins(4);
/// How long a command may take to end.
const ENDS_WITHIN: Duration = Duration::from_mins(2);

/// How long Pods have to wait before the sweeper lets them go: less than by default, unless traps are to have their full size.
fn after() -> String {
    format!("--after={}", scaled("5s", "2m"))
}

#[tokio::test]
async fn ah7_without_a_program_the_sweeper_lets_pods_go_and_the_record_says_so() -> Result<()> {
    let mut counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let sweeper = Accounting::command(&counted.world.cluster, "sweep", &[&after()]).await?;
    sweeper.wait_ready().await?;
    let tenant = counted.world.tenant("swept").await?;
    tenant.create("swept", RUNS, nodes(2)).await?;
    run_held(&tenant, "swept", 2).await?;
    until_ok("the record tells of its Pods", ENDS_WITHIN, || async {
        let status = status(&tenant, "swept").await?;
        ensure!(status.totals.pods.active == 2, "{status:#?}");
        Ok(())
    })
    .await?;
    counted.program.kill9();
    tenant.delete("swept").await?;
    until_ok("its Pods are gone", SWEPT_WITHIN, || async {
        let pods = tenant.pods_of("swept").await?;
        ensure!(pods.is_empty(), "{} are there", pods.len());
        Ok(())
    })
    .await?;
    until_ok("the sweeper tells of them", PATIENCE, || async {
        let lost = "trainjob_accounting_lost_pods_total";
        let swept = sweeper.labelled_metric(lost, r#"reason="Swept""#).await?;
        ensure!((swept - 2.0).abs() < 0.5, "{swept} were swept");
        Ok(())
    })
    .await?;
    counted.program = Accounting::start(&counted.world.cluster, SETTINGS).await?;
    let status = becomes_final(&tenant, "swept").await?;
    ensure!(status.lost.get("Unwatched") == Some(&2), "{status:#?}");
    ensure!(status.outcome == "Deleted" && !holds(&status, "Exact"), "{status:#?}");
    Ok(())
}

#[tokio::test]
async fn ah7_the_sweeper_leaves_pods_to_a_leader_that_comes_back_after_the_api_server_was_away()
-> Result<()> {
    let mut counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let cluster = &counted.world.cluster;
    let proxy = Proxy::start(cluster, Scope::Cluster).await?;
    let direct = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
    let proxied = proxy.kubeconfig(&direct)?;
    let sweeper = Accounting::command_as(cluster, "sweep", &["--after=1s"], proxied).await?;
    sweeper.wait_ready().await?;
    let tenant = counted.world.tenant("away").await?;
    tenant.create("away", RUNS, nodes(2)).await?;
    run_held(&tenant, "away", 2).await?;
    // To the sweeper the API server is away, and the leader cannot renew its Lease.
    let away =
        proxy.inject(|_| true, 1..=usize::MAX, Fault::Answer { status: 503, retry_after: None });
    proxy.end_watches();
    away.reached().await?;
    counted.program.kill9();
    tenant.delete("away").await?;
    let held = async || {
        let pods = tenant.pods_of("away").await?;
        ensure!(pods.len() == 2, "{} are there", pods.len());
        Ok(())
    };
    consistently("nobody releases its Pods", LEASE_BELIEVED + LEASE_BELIEVED / 10, held).await?;
    away.remove();
    consistently("the sweeper leaves them to a leader", LEASE_BELIEVED / 3, held).await?;
    counted.program = Accounting::start(&counted.world.cluster, SETTINGS).await?;
    let status = becomes_final(&tenant, "away").await?;
    ensure!(status.lost.is_empty() && holds(&status, "Exact"), "{status:#?}");
    Ok(())
}

/// A runtime whose JobSets are restarted so often, and whose Pods do what these annotations say.
async fn restarting(tenant: &Tenant<'_>, annotations: &Value, restarts: u32) -> Result<()> {
    let mut restarting = runtime("restarting", annotations, 1, None);
    let job_set = restarting.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
    let policy = json!({"maxRestarts": restarts});
    job_set.context("no JobSet")?.insert("failurePolicy".to_owned(), policy);
    apply(&tenant.client, "default", vec![restarting]).await?;
    Ok(())
}

/// What its kubelet says of a Pod that has failed.
async fn fail(tenant: &Tenant<'_>, pod: &Pod) -> Result<()> {
    let ended = json!({"exitCode": 1, "reason": "Error", "finishedAt": e2e::fixtures::status::now().to_string()});
    let container = json!({
        "name": "node", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"running": null, "terminated": ended},
    });
    let failed = json!({"status": {"phase": "Failed", "containerStatuses": [container]}});
    let how = PatchParams::default();
    tenant.pods.patch_status(&pod.name_any(), &how, &Patch::Merge(failed)).await?;
    Ok(())
}

#[tokio::test]
async fn ah7_without_a_program_restarts_wait_for_the_sweeper_and_the_record_adds_up_afterwards()
-> Result<()> {
    let mut counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let sweeper = Accounting::command(&counted.world.cluster, "sweep", &[&after()]).await?;
    sweeper.wait_ready().await?;
    let tenant = counted.world.tenant("restarted").await?;
    restarting(&tenant, &json!({}), 1).await?;
    tenant.create("restarted", "restarting", nodes(2)).await?;
    let first = run_held(&tenant, "restarted", 2).await?;
    until_ok("the record tells of its Pods", ENDS_WITHIN, || async {
        let status = status(&tenant, "restarted").await?;
        ensure!(status.totals.pods.active == 2, "{status:#?}");
        Ok(())
    })
    .await?;
    counted.program.kill9();
    let failed_at = Instant::now();
    fail(&tenant, first.first().context("no Pod")?).await?;
    others_come(&tenant, "restarted", &first, SWEPT_WITHIN).await?;
    ensure!(failed_at.elapsed() < SWEPT_WITHIN, "they waited for {:?}", failed_at.elapsed());
    counted.program = Accounting::start(&counted.world.cluster, SETTINGS).await?;
    // Until it leads, the sweeper lets Pods go.
    counted.program.leads().await?;
    let second = run_held(&tenant, "restarted", 2).await?;
    fail(&tenant, second.first().context("no Pod")?).await?;
    tenant.becomes("restarted", "Failed").await?;
    let status = becomes_final(&tenant, "restarted").await?;
    ensure!(status.lost.get("Unwatched") == Some(&2), "{status:#?}");
    let pods = status.totals.pods;
    ensure!((pods.failed, pods.deleted) == (1, 1), "{status:#?}");
    ensure!(status.outcome == "Failed" && !holds(&status, "Exact"), "{status:#?}");
    Ok(())
}

/// Whether each of these jobs has failed for good.
async fn have_failed(tenant: &Tenant<'_>, jobs: &[&str]) -> Result<bool> {
    for job in jobs {
        let job = tenant.jobs.get(job).await?;
        if conditions::find_true(conditions_of(&job), conditions::FAILED).is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[tokio::test]
async fn ah8_drain_holds_up_no_restart_and_leaves_nothing_when_a_storm_of_them_is_over()
-> Result<()> {
    const JOBS: [&str; 3] = ["storm-a", "storm-b", "storm-c"];
    let counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let cluster = &counted.world.cluster;
    let tenant = counted.world.tenant("storm").await?;
    let fails = json!({COMPLETES_AFTER: "1s", "e2e.trainjob.dev/outcome": "fail"});
    restarting(&tenant, &fails, 4).await?;
    for job in JOBS {
        tenant.create(job, "restarting", nodes(2)).await?;
    }
    for job in JOBS {
        until_ok("there is a record", ENDS_WITHIN, || async { status(&tenant, job).await }).await?;
    }
    // Whoever removes the program has it stopped meanwhile; restarts wait for Pods that it has not counted.
    counted.program.kill9();
    let refused = Accounting::command(cluster, "drain", &["--timeout=1m"]).await?;
    let ended = refused.wait(ENDS_WITHIN).await?;
    ensure!(ended.code() == Some(3), "{ended}: {}", refused.log()?);
    let log = refused.log()?;
    for job in JOBS {
        let named = format!("{}/{job}", tenant.namespace);
        ensure!(log.lines().any(|line| line == named), "{job} is not named: {log}");
    }
    // It may end between two restarts, when there is no Pod. What is made later waits for who drains again.
    let begun = Instant::now();
    loop {
        let is_over = have_failed(&tenant, &JOBS).await?;
        ensure!(is_over || begun.elapsed() < SWEPT_WITHIN, "not all have failed for good");
        let abandoned =
            Accounting::command(cluster, "drain", &["--timeout=4m", "--abandon"]).await?;
        let ended = abandoned.wait(SWEPT_WITHIN).await?;
        ensure!(ended.success(), "{ended}: {}", abandoned.log()?);
        if is_over {
            break;
        }
    }
    for job in JOBS {
        let held = tenant.pods_of(job).await?.into_iter().filter(is_held).count();
        ensure!(held == 0, "{held} Pods of {job} are held");
        let restarts = tenant.job_sets.get(job).await?;
        let restarts = restarts.data.pointer("/status/restarts").and_then(Value::as_u64);
        ensure!(restarts == Some(4), "{job} was restarted {restarts:?} times");
    }
    Ok(())
}

#[tokio::test]
async fn ah8_drain_names_unfinished_jobs_and_releases_all_pods_when_they_are_abandoned()
-> Result<()> {
    let counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let cluster = &counted.world.cluster;
    let tenant = counted.world.tenant("drained").await?;
    tenant.create("drained", RUNS, nodes(2)).await?;
    run_held(&tenant, "drained", 2).await?;

    let refused = Accounting::command(cluster, "drain", &["--timeout=1m"]).await?;
    let ended = refused.wait(ENDS_WITHIN).await?;
    ensure!(ended.code() == Some(3), "{ended}: {}", refused.log()?);
    let named = format!("{}/drained", tenant.namespace);
    ensure!(refused.log()?.lines().any(|line| line == named), "{}", refused.log()?);
    ensure!(tenant.pods_of("drained").await?.iter().all(is_held), "one was released");

    let abandoned = Accounting::command(cluster, "drain", &["--timeout=1m", "--abandon"]).await?;
    let ended = abandoned.wait(ENDS_WITHIN).await?;
    ensure!(ended.success(), "{ended}: {}", abandoned.log()?);
    let pods = tenant.pods_of("drained").await?;
    ensure!(pods.len() == 2 && !pods.iter().any(is_held), "{pods:#?}");
    let running = tenant.running_pods_of("drained").await?;
    ensure!(running == 2, "drain stopped Pods: {running} run");
    tenant.delete("drained").await?;
    no_pods(&tenant, "drained").await?;
    let status = becomes_final(&tenant, "drained").await?;
    let counted_or_lost = status.totals.pods.deleted + status.lost.values().sum::<u64>();
    ensure!(counted_or_lost == 2 && !holds(&status, "Exact"), "{status:#?}");

    let nothing = Accounting::command(cluster, "drain", &[]).await?;
    let ended = nothing.wait(ENDS_WITHIN).await.context("it does not end")?;
    ensure!(ended.success(), "{ended}: {}", nothing.log()?);
    Ok(())
}
