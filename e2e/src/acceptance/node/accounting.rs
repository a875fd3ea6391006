//! What only a real node does to Pods that are counted: ranks that catch SIGTERM, the kernel that kills, a crash loop, an eviction,
//! a kubelet that dies (traps 14 to 16 of `docs/accounting-tests.md`).

use anyhow::{Context, Result, ensure};
use invariants::accounting::Terms;
use serde_json::{Value, json};
use trainjob_api::conditions::FAILED;
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use crate::testenv::accounting::{
    Accounting, become_older, becomes_final, holds, install_accounting, reasons, start_operator,
    status,
};
use crate::testenv::fixtures::{Tenant, runtime};
use crate::testenv::node::image::SMALL;
use crate::testenv::node::{Node, Tell, pods};
use crate::testenv::recorder::AccountingRecorder;
use crate::testenv::yaml;

/// A runtime whose containers are not started again.
const ONCE: &str = "small-once";
/// One whose containers are, until their Job gives up.
const AGAIN: &str = "small-again";
/// One whose Pods may store a mebibyte in `/scratch`.
const SCRATCH: &str = "small-scratch";
/// The grace period of their Pods.
const GRACE: i64 = 5;
const SETTINGS: &str = "{batchPeriod: 1s}";
/// The first rank fails when the three others are ready, which end with an error of their own when they are told to.
const RANKS: &str = "
case $JOB_COMPLETION_INDEX in
    0) for other in 1 2 3; do nc -l -p 7000 </dev/null; done; exit 1 ;;
esac
trap 'exit 1' TERM
until echo ready | nc -w 5 $FIRST 7000; do sleep 0.2; done
while true; do sleep 0.2; done
";

/// Shows all of it; what happened is judged by the invariants A1 to A12.
pub(super) async fn run(node: &Node, tell: &Tell) -> Result<()> {
    let world = &node.world;
    let once = runtime(ONCE, &json!({}), GRACE, None);
    let runtimes = yaml::stream(&[once, again()?, scratch()?]);
    world.cluster.apply_yaml("default", &runtimes).await?;
    install_accounting(&world.cluster).await?;
    let program = Accounting::start(&world.cluster, SETTINGS).await?;
    program.leads().await?;
    start_operator(world, "Exact").await?;
    let recorder = AccountingRecorder::start(world.cluster.client().await?).await?;
    world
        .test("counted", async |tenant| {
            tokio::try_join!(
                ranks(tenant, tell),
                greedy(tenant, tell),
                loops(tenant, tell),
                evicted(tenant, tell),
            )?;
            drop(program);
            let _program = unwatched_ranks(tenant, tell).await?;
            dead_kubelet(node, tenant, tell).await?;
            recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
        })
        .await
}

/// A runtime whose Job starts a container that fails once more.
fn again() -> Result<Value> {
    let mut again = runtime(AGAIN, &json!({}), GRACE, None);
    for (place, field, value) in
        [("", "backoffLimit", json!(1)), ("/template/spec", "restartPolicy", json!("OnFailure"))]
    {
        let place = format!("/spec/template/spec/replicatedJobs/0/template/spec{place}");
        let object = again.pointer_mut(&place).and_then(Value::as_object_mut);
        object.with_context(|| format!("no {place}"))?.insert(field.to_owned(), value);
    }
    Ok(again)
}

/// A runtime whose Pods are evicted when they store too much.
fn scratch() -> Result<Value> {
    let mut scratch = runtime(SCRATCH, &json!({}), GRACE, None);
    let pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
    let pod = scratch.pointer_mut(pod).context("no Pod")?;
    let volume = json!({"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}});
    let mount = json!({"name": "scratch", "mountPath": "/scratch"});
    let container = pod.pointer_mut("/containers/0").and_then(Value::as_object_mut);
    container.context("no container")?.insert("volumeMounts".to_owned(), json!([mount]));
    let pod = pod.as_object_mut().context("no spec")?;
    pod.insert("volumes".to_owned(), json!([volume]));
    Ok(scratch)
}

async fn create(tenant: &Tenant<'_>, job: &str, runtime: &str, trainer: Value) -> Result<()> {
    let mut trainer = trainer;
    trainer.as_object_mut().context("no trainer")?.insert("image".to_owned(), json!(SMALL));
    tenant.create(job, runtime, json!({"trainer": trainer})).await?;
    Ok(())
}

async fn create_ranks(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    let first = json!([{"name": "FIRST", "value": format!("{job}-node-0-0.{job}")}]);
    let trainer = json!({"numNodes": 4, "command": ["sh", "-c", RANKS], "env": first});
    create(tenant, job, ONCE, trainer).await
}

/// Of four ranks one has failed, and three were stopped, though all have ended with the same code.
async fn is_one_of_four(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    let status = becomes_final(tenant, job).await?;
    ensure!(reasons(&status) == [("Error", 1), ("Stopped", 3)], "{status:#?}");
    let expected = PodCounts { failed: 1, deleted: 3, ..PodCounts::default() };
    ensure!(status.totals.pods == expected && holds(&status, "Exact"), "{status:#?}");
    Ok(())
}

async fn ranks(tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    create_ranks(tenant, "ranks").await?;
    pods::ends(tenant, "ranks", FAILED).await?;
    is_one_of_four(tenant, "ranks").await?;
    tell.say("of four ranks one has failed, and three that exit with 1 on SIGTERM were stopped");
    Ok(())
}

/// The same while no program runs. Returns one that has counted them afterwards.
async fn unwatched_ranks(tenant: &Tenant<'_>, tell: &Tell) -> Result<Accounting> {
    create_ranks(tenant, "unwatched").await?;
    pods::ends(tenant, "unwatched", FAILED).await?;
    let program = Accounting::start(&tenant.world.cluster, SETTINGS).await?;
    is_one_of_four(tenant, "unwatched").await?;
    tell.say("so they were while nobody watched");
    Ok(program)
}

async fn greedy(tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    let limits = json!({"limits": {"memory": "32Mi"}});
    let trainer = json!({"command": ["tail", "/dev/zero"], "resourcesPerNode": limits});
    create(tenant, "greedy", ONCE, trainer).await?;
    pods::ends(tenant, "greedy", FAILED).await?;
    let status = becomes_final(tenant, "greedy").await?;
    ensure!(reasons(&status) == [("OOMKilled", 1)] && holds(&status, "Exact"), "{status:#?}");
    tell.say("what the kernel has killed for its memory counts so");
    Ok(())
}

/// The kubelet evicts what stores too much, and says so.
async fn evicted(tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    let fills = "head -c 8388608 /dev/zero > /scratch/full; while true; do sleep 0.2; done";
    create(tenant, "evicted", SCRATCH, json!({"command": ["sh", "-c", fills]})).await?;
    pods::ends(tenant, "evicted", FAILED).await?;
    let status = becomes_final(tenant, "evicted").await?;
    ensure!(reasons(&status) == [("Evicted", 1)] && holds(&status, "Exact"), "{status:#?}");
    tell.say("a Pod that the kubelet has evicted counts so");
    Ok(())
}

/// A crash loop ends in a deletion by the Job, just after its container was started once more (F3).
async fn loops(tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    create(tenant, "loops", AGAIN, json!({"command": ["sh", "-c", "exit 3"]})).await?;
    pods::ends(tenant, "loops", FAILED).await?;
    let status = becomes_final(tenant, "loops").await?;
    ensure!(reasons(&status) == [("Error", 1)] && holds(&status, "Exact"), "{status:#?}");
    ensure!(status.totals.pods.failed == 1, "{status:#?}");
    tell.say("a Pod that a crash loop ends has failed");
    Ok(())
}

/// A Pod whose kubelet is dead has not ended, whoever has deleted it.
async fn dead_kubelet(node: &Node, tenant: &Tenant<'_>, tell: &Tell) -> Result<()> {
    let stops = "trap 'exit 0' TERM; while true; do sleep 0.2; done";
    create(tenant, "orphan", ONCE, json!({"command": ["sh", "-c", stops]})).await?;
    pods::run(tenant, "orphan", 1).await?;
    become_older(&tenant.pods_of("orphan").await?).await?;
    node.while_kubelet_is_dead(async || {
        tenant.delete("orphan").await?;
        pods::outlive_their_grace(tenant, "orphan").await?;
        let status = status(tenant, "orphan").await?;
        ensure!(status.totals.pods.active == 1 && !holds(&status, "Final"), "{status:#?}");
        Ok(())
    })
    .await?;
    let status = becomes_final(tenant, "orphan").await?;
    let reasons = reasons(&status);
    let ended = status.totals.pods.succeeded == 1 || reasons == [("Stopped", 1)];
    ensure!(ended && holds(&status, "Exact"), "{status:#?}");
    tell.say("a Pod of a dead kubelet was counted when there was another one");
    Ok(())
}
