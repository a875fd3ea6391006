//! The traps of accounting: each once, on a real API server with simulated nodes (`docs/accounting-tests.md`).

mod bare;
mod bulk;
mod by_hand;
mod commands;
mod definitions;
mod deletions;
mod disruptions;
mod forged;
mod marked_updates;
mod namespaces;
mod node_clocks;
mod observed;
mod outages;
mod outcomes;
mod own_box;
mod random_jobs;
mod record_steps;
mod records;
mod refused;
mod restarts;
mod rights;
mod takeovers;
mod writers;

use std::env;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::accounting::{Counted, is_held};
use e2e::fixtures::shared::Shared;
use e2e::fixtures::{PATIENCE, Tenant};
use e2e::recorder::AccountingRecorder;
use e2e::until::until_ok;
use invariants::accounting::Terms;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

/// How long writes of a record may be refused here, before a Pod that somebody waits for is let go.
const SETTINGS: &str = "{batchPeriod: 1s, holdLimit: 10s}";

/// A box for all traps in which the program lives on.
async fn counted() -> Result<Arc<Counted>> {
    static SHARED: Shared<Counted> = Shared::new();
    SHARED.get(async || Counted::start("Exact", SETTINGS).await).await
}

/// Runs a trap in a namespace of its own, in the box in which the program lives on. What happened is judged (A1 to A12).
async fn judged(prefix: &str, trap: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    judged_in(&*counted().await?, prefix, trap).await
}

/// The same in this box.
async fn judged_in(
    counted: &Counted,
    prefix: &str,
    trap: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>,
) -> Result<()> {
    judged_by(&Terms::default(), counted, prefix, trap).await
}

/// The same on these terms.
async fn judged_by(
    terms: &Terms,
    counted: &Counted,
    prefix: &str,
    trap: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>,
) -> Result<()> {
    let recorder = AccountingRecorder::start(counted.world.cluster.client().await?).await?;
    let judge = async |tenant: &Tenant<'_>| {
        Box::pin(trap(tenant)).await?;
        recorder.judge(&[&tenant.namespace], &[], terms).await
    };
    counted.test(prefix, judge).await
}

/// How many there are of something: few, or as many as the trap is about if `ACCOUNTING_TRAPS` is `full`.
fn scaled<T>(few: T, full: T) -> T {
    if env::var_os("ACCOUNTING_TRAPS").is_some_and(|it| it == "full") { full } else { few }
}

/// So many nodes, each with a GPU.
fn nodes(count: u32) -> Value {
    let gpus = json!({"limits": {"nvidia.com/gpu": "1"}});
    json!({"trainer": {"numNodes": count, "resourcesPerNode": gpus}})
}

/// Waits until so many Pods of a job run with our finalizer.
async fn run_held(tenant: &Tenant<'_>, job: &str, count: usize) -> Result<Vec<Pod>> {
    until_ok("its Pods run", PATIENCE, || async {
        let pods = tenant.pods_of(job).await?;
        let runs = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            phase == Some("Running") && is_held(pod)
        };
        let running = pods.iter().filter(runs).count();
        ensure!(running == count, "{running} do");
        Ok(pods)
    })
    .await
}

/// Waits until none of these Pods of a job is there any more, but as many others.
async fn others_come(
    tenant: &Tenant<'_>,
    job: &str,
    first: &[Pod],
    within: Duration,
) -> Result<()> {
    until_ok("there are other Pods", within, || async {
        let pods = tenant.pods_of(job).await?;
        let is_first = |pod: &Pod| first.iter().any(|it| it.uid() == pod.uid());
        ensure!(!pods.iter().any(is_first), "the first are there");
        ensure!(pods.len() == first.len(), "{} are there", pods.len());
        Ok(())
    })
    .await
}

/// Waits until no Pod of a job has our finalizer.
async fn released(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    until_ok("no Pod is held", PATIENCE, || async {
        let held: Vec<_> = tenant.pods_of(job).await?.into_iter().filter(is_held).collect();
        ensure!(held.is_empty(), "{} are", held.len());
        Ok(())
    })
    .await
}

/// Waits until a job has no Pod any more.
async fn no_pods(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    until_ok("its Pods are gone", PATIENCE, || async {
        let pods = tenant.pods_of(job).await?;
        ensure!(pods.is_empty(), "{} are there", pods.len());
        Ok(())
    })
    .await
}
