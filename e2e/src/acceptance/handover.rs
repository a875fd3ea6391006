//! Suspended JobSets that are marked, in the hands of operators that know no marks (`docs/accounting.md`, 2): this one as it
//! was before there were any, and Kubeflow Trainer.
//!
//! All are real, and so is the accounting program, which lives on. What becomes of a mark is theirs to say; that no Pod
//! is held, that all Pods that are marked are counted, and that the operator makes a mark whole again, is ours.

mod older;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use invariants::accounting::Terms;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use trainjob_api::conditions::{COMPLETE, FAILED, find_true};
use trainjob_api::lifecycle::v1alpha1::record::{PodCounts, TrainJobRecordStatus};

use crate::testenv::accounting::accounting_box::AccountingBox;
use crate::testenv::accounting::marked::{
    Mark, PODS, change, is_marked, is_updated, marks, paused, queued, queued_on, resume,
};
use crate::testenv::accounting::{Counted, becomes_final, holds, is_held, start_operator};
use crate::testenv::apply::apply;
use crate::testenv::binaries::{Binaries, Program};
use crate::testenv::fixtures::status::conditions_of;
use crate::testenv::fixtures::{COMPLETES_AFTER, PATIENCE, Tenant, runtime};
use crate::testenv::ports::Port;
use crate::testenv::product::Product;
use crate::testenv::recorder::AccountingRecorder;
use crate::testenv::trainer::{self, Manifests, NAMESPACE};
use crate::testenv::until::until_ok;

const SETTINGS: &str = "{batchPeriod: 1s, holdLimit: 10s}";
/// What it tells of Pods that it cannot count.
const LOST: &str = "trainjob_accounting_lost_pods_total";
/// A runtime of jobs that fail.
const FRAGILE: &str = "fragile";
/// How often they are restarted.
const RESTARTS: u64 = 2;
/// How long that may take: the program looks every two minutes for Pods that have our finalizer and none of our labels (AH7).
const WITHIN: Duration = Duration::from_mins(6);

/// Shows all of it; `tell` hears of each step.
pub async fn run(tell: &(dyn Fn(&str) + Sync)) -> Result<()> {
    let provide = || {
        Binaries::provide(&[Program::TrainerManager])?;
        older::provide()
    };
    let (older, commit) = tokio::task::spawn_blocking(provide).await??;
    tell("the operator as it was before marks and Kubeflow Trainer are there");
    let alone = Box::pin(AccountingBox::alone()).await?;
    let counted = Box::pin(Counted::start_in(alone, "Exact", SETTINGS)).await?;
    let client = counted.world.cluster.client().await?;
    let recorder = AccountingRecorder::start(client.clone()).await?;
    counted
        .test("older", async |tenant| {
            to_an_older_operator(&counted, tenant, &older, &commit, tell).await?;
            recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
        })
        .await
        .context("an older operator")?;
    counted
        .test("trainer", async |tenant| {
            to_trainer(&counted, tenant, tell).await?;
            recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
        })
        .await
        .context("Kubeflow Trainer")?;
    let pods: Api<Pod> = Api::all(client);
    let held =
        pods.list(&ListParams::default()).await?.items.iter().filter(|it| is_held(it)).count();
    ensure!(held == 0, "{held} Pods are held");
    Ok(())
}

/// Sees that exactly so many Pods of a job are counted, and no other is told of.
fn counts(status: &TrainJobRecordStatus, succeeded: u64, deleted: u64) -> Result<()> {
    let expected = PodCounts { succeeded, deleted, ..PodCounts::default() };
    ensure!(status.totals.pods == expected && status.lost.is_empty(), "{status:#?}");
    ensure!(holds(status, "Exact"), "{status:#?}");
    Ok(())
}

/// A runtime whose Pods fail after a second, and whose JobSets are restarted so often.
fn fragile(restarts: u64) -> Result<Value> {
    let fails = json!({COMPLETES_AFTER: "1s", "e2e.trainjob.dev/outcome": "fail"});
    let mut fragile = runtime(FRAGILE, &fails, 3, None);
    let spec = fragile.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
    let policy = json!({"maxRestarts": restarts});
    spec.context("no JobSet")?.insert("failurePolicy".to_owned(), policy);
    Ok(fragile)
}

async fn to_an_older_operator(
    counted: &Counted,
    tenant: &Tenant<'_>,
    file: &Path,
    commit: &str,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    let world = &counted.world;
    apply(&tenant.client, "default", vec![fragile(RESTARTS)?]).await?;
    let before = [
        ("queued", queued(tenant, "queued").await?),
        ("paused", paused(tenant, "paused").await?),
        ("left", queued(tenant, "left").await?),
        ("restarted", queued_on(tenant, "restarted", FRAGILE).await?),
    ];
    world.start_other_operator(file).await?;
    for (job, before) in &before {
        until_ok(format!("the JobSet of {job} is updated"), PATIENCE, || async {
            let job_set = tenant.has_job_set(job).await?;
            ensure!(job_set.uid() == before.uid(), "it is another one");
            ensure!(Mark::of(&job_set) == Mark::unlabelled(), "{:?}", Mark::of(&job_set));
            Ok(())
        })
        .await?;
    }
    tell(&format!(
        "the operator of {commit} keeps marked JobSets, with the finalizer and without our labels"
    ));
    let [queued, paused, left, _] = &before;
    for ((job, before), suspended) in [(queued, 0), (paused, PODS)] {
        change(tenant, job, &json!({})).await?;
        is_updated(tenant, job, before).await?;
        resume(tenant, job).await?;
        tenant.becomes(job, COMPLETE).await?;
        counts(&becomes_final(tenant, job).await?, PODS, suspended)?;
    }
    tell("it resumes them: their Jobs still have our labels, and all Pods count");
    restarts(counted, tenant, tell).await?;
    start_operator(world, "Exact").await?;
    let (job, before) = left;
    until_ok("the mark is whole again", PATIENCE, || async {
        let (expected, found) = marks(tenant, job).await?;
        ensure!(found == expected, "{found:?}");
        Ok(())
    })
    .await?;
    change(tenant, job, &json!({})).await?;
    is_updated(tenant, job, before).await?;
    resume(tenant, job).await?;
    tenant.becomes(job, COMPLETE).await?;
    counts(&becomes_final(tenant, job).await?, PODS, 0)?;
    tell("this operator makes the mark whole again, and the Pods of the job that it resumes count");
    Ok(())
}

/// Jobs that JobSet makes anew have no labels of ours, and their Pods have the finalizer: nobody can count them, and until
/// they are found, the next restart waits for them.
async fn restarts(
    counted: &Counted,
    tenant: &Tenant<'_>,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    let lost = async || counted.program.labelled_metric(LOST, "reason=\"Unlabelled\"").await;
    let lost_before = lost().await?;
    let begun = Instant::now();
    resume(tenant, "restarted").await?;
    until_ok("it has failed as often as it may", WITHIN, || async {
        let job = tenant.jobs.get("restarted").await?;
        find_true(conditions_of(&job), FAILED).context("it has not")?;
        let held = tenant.pods_of("restarted").await?.iter().filter(|pod| is_held(pod)).count();
        ensure!(held == 0, "{held} Pods are held");
        Ok(())
    })
    .await?;
    let waited = begun.elapsed().as_secs_f64();
    let let_go = lost().await? - lost_before;
    let uncounted = RESTARTS * PODS;
    let expected = f64::from(u32::try_from(uncounted)?);
    ensure!((let_go - expected).abs() < 0.5, "the program tells of {let_go}, not {expected}");
    let status = becomes_final(tenant, "restarted").await?;
    let pods = status.totals.pods;
    ensure!(pods.failed + pods.deleted == PODS && pods.succeeded == 0, "{status:#?}");
    tell(&format!(
        "after a restart Pods have the finalizer only: {uncounted} of {} are not counted, which the program \
         tells, and {RESTARTS} restarts take {waited:.0} s",
        uncounted + PODS
    ));
    Ok(())
}

/// Starts Trainer's manager with its definitions in the place of the operator's. Its admission server is not asked.
async fn trainer(counted: &Counted) -> Result<(Product, Port)> {
    let cluster = &counted.world.cluster;
    let webhook = Port::take()?;
    let manifests = Manifests::provide(cluster, &webhook).await?;
    let mut objects = manifests.for_process();
    let registers = |kind: &str| kind.ends_with("WebhookConfiguration");
    objects.retain(|object| !object["kind"].as_str().is_some_and(registers));
    apply(&cluster.client().await?, NAMESPACE, objects).await?;
    let manager = trainer::start(cluster, &webhook, manifests.configuration()?).await?;
    Ok((manager, webhook))
}

async fn to_trainer(
    counted: &Counted,
    tenant: &Tenant<'_>,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<()> {
    let before = [
        ("queued", queued(tenant, "queued").await?),
        ("paused", paused(tenant, "paused").await?),
        ("restarted", queued_on(tenant, "restarted", FRAGILE).await?),
    ];
    counted.world.stop_operator().await?;
    let _trainer = trainer(counted).await?;
    let [queued, paused, (restarted, _)] = &before;
    for ((job, before), suspended) in [(queued, 0), (paused, PODS)] {
        change(tenant, job, &json!({})).await?;
        is_updated(tenant, job, before).await?;
        is_marked(tenant, job).await?;
        resume(tenant, job).await?;
        tenant.becomes(job, COMPLETE).await?;
        counts(&becomes_final(tenant, job).await?, PODS, suspended)?;
    }
    resume(tenant, restarted).await?;
    tenant.becomes(restarted, FAILED).await?;
    let status = becomes_final(tenant, restarted).await?;
    let pods = status.totals.pods;
    let all = PODS * (RESTARTS + 1);
    ensure!((pods.failed + pods.deleted, pods.succeeded) == (all, 0), "{status:#?}");
    ensure!(status.totals.restarts == RESTARTS && holds(&status, "Exact"), "{status:#?}");
    for (job, before) in &before {
        is_marked(tenant, job).await?;
        ensure!(tenant.has_job_set(job).await?.uid() == before.uid(), "{job} has another JobSet");
    }
    tell("Kubeflow Trainer updates and resumes marked JobSets: the mark stays, and all Pods count");
    Ok(())
}
