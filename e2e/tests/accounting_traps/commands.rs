//! Traps 25 and 29: the program is away while jobs are deleted, and it is removed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::accounting::{Accounting, Counted, becomes_final, holds, status};
use e2e::fixtures::RUNS;
use e2e::until::until_ok;

use super::{SETTINGS, is_held, no_pods, nodes, run_held};

/// The Lease has to stand still for a minute, and a Pod waits for four at most.
const SWEPT_WITHIN: Duration = Duration::from_mins(4);
/// How long a command may take to end.
const ENDS_WITHIN: Duration = Duration::from_mins(2);

#[tokio::test]
async fn ah7_without_a_program_the_sweeper_lets_pods_go_and_the_record_says_so() -> Result<()> {
    let mut counted = Box::pin(Counted::start("Exact", SETTINGS)).await?;
    let sweeper = Accounting::command(&counted.world.cluster, "sweep", &["--after=5s"]).await?;
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
    let swept =
        sweeper.labelled_metric("trainjob_accounting_lost_pods_total", r#"reason="Swept""#).await?;
    ensure!((swept - 2.0).abs() < 0.5, "{swept} were swept");
    counted.program = Accounting::start(&counted.world.cluster, SETTINGS).await?;
    let status = becomes_final(&tenant, "swept").await?;
    ensure!(status.lost.get("Unwatched") == Some(&2), "{status:#?}");
    ensure!(status.outcome == "Deleted" && !holds(&status, "Exact"), "{status:#?}");
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
