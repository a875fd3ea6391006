//! Traps 13 and 14: Pods lose their node, or have to make room.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::accounting::accounting_box::AccountingBox;
use e2e::accounting::{Counted, becomes_final, holds, reasons, status};
use e2e::apply::apply;
use e2e::cluster::Options;
use e2e::component::Component;
use e2e::fixtures::{PATIENCE, RUNS, Tenant, runtime};
use e2e::recorder::AccountingRecorder;
use e2e::until::until_ok;
use invariants::accounting::Terms;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, EvictParams, Patch, PatchParams};
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::record::PodCounts;

use super::{SETTINGS, judged, judged_in, nodes, run_held};

/// How long the Pod garbage collector may take, which looks every 20 seconds, and at Pods whose node is gone only after 40.
const COLLECTED_WITHIN: Duration = Duration::from_mins(4);
/// How many terminated Pods it leaves alone here.
const THRESHOLD: usize = 5;
/// The priority of who may push others out.
const URGENT: &str = "urgent";

/// A runtime whose Pods run on this node until they are stopped, with this much more in their spec.
async fn on_node(tenant: &Tenant<'_>, name: &str, node: &str, more: &Value) -> Result<()> {
    let mut on_node = runtime(name, &json!({}), 3, None);
    let pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
    let pod = on_node.pointer_mut(pod).and_then(Value::as_object_mut).context("no Pod")?;
    pod.insert("nodeSelector".to_owned(), json!({"kubernetes.io/hostname": node}));
    pod.extend(more.as_object().cloned().unwrap_or_default());
    apply(&tenant.client, "default", vec![on_node]).await?;
    Ok(())
}

/// One node with all GPUs of a machine.
fn whole_node() -> Value {
    let gpus = json!({"limits": {"nvidia.com/gpu": "8"}});
    json!({"trainer": {"numNodes": 1, "resourcesPerNode": gpus}})
}

/// Its only Pod failed, for this reason.
async fn failed_by(tenant: &Tenant<'_>, job: &str, reason: &str) -> Result<()> {
    until_ok("its Pod is counted", COLLECTED_WITHIN, || async {
        let status = status(tenant, job).await?;
        ensure!(status.totals.pods.failed == 1, "{status:#?}");
        Ok(())
    })
    .await?;
    let status = becomes_final(tenant, job).await?;
    let failed = PodCounts { failed: 1, ..PodCounts::default() };
    ensure!(status.totals.pods == failed && reasons(&status) == [(reason, 1)], "{status:#?}");
    ensure!(holds(&status, "Exact") && status.outcome == "Failed", "{status:#?}");
    Ok(())
}

#[tokio::test]
async fn a_pod_that_is_evicted_counts_as_drained() -> Result<()> {
    judged("evicted", async |tenant| {
        tenant.create("evicted", RUNS, nodes(1)).await?;
        let pod = run_held(tenant, "evicted", 1).await?.pop().context("no Pod")?;
        tenant.pods.evict(&pod.name_any(), &EvictParams::default()).await?;
        failed_by(tenant, "evicted", "Drained").await
    })
    .await
}

/// In a box of its own, whose nodes come to harm.
#[tokio::test]
async fn pods_that_their_node_or_a_more_urgent_pod_ends_are_counted_and_say_why() -> Result<()> {
    let alone = Box::pin(AccountingBox::alone()).await?;
    let counted = Box::pin(Counted::start_in(alone, "Exact", SETTINGS)).await?;
    judged_in(&counted, "harmed", async |tenant| {
        let all: Api<Node> = Api::all(tenant.client.clone());
        let jobs =
            [("tainted", "gpu-0"), ("lost", "gpu-1"), ("shut-down", "gpu-2"), ("small", "gpu-3")];
        for (job, node) in jobs {
            on_node(tenant, job, node, &json!({})).await?;
            tenant.create(job, job, whole_node()).await?;
        }
        for (job, node) in jobs {
            let pods = run_held(tenant, job, 1).await?;
            let of: Vec<_> =
                pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref()).collect();
            ensure!(of == [node], "{job} runs on {of:?}");
        }
        taint(&all, "gpu-0", "e2e.trainjob.dev/broken").await?;
        all.delete("gpu-1", &DeleteParams::default()).await?;
        urgent(tenant, "gpu-3").await?;
        failed_by(tenant, "tainted", "NodeLost").await?;
        failed_by(tenant, "small", "Preempted").await?;
        failed_by(tenant, "lost", "NodeLost").await?;

        // From here on no kubelet reports anything.
        counted.world.cluster.stop(Component::Kwok);
        let ready = json!({"type": "Ready", "status": "False", "reason": "Off"});
        let unready = Patch::Strategic(json!({"status": {"conditions": [ready]}}));
        all.patch_status("gpu-2", &PatchParams::default(), &unready).await?;
        taint(&all, "gpu-2", "node.kubernetes.io/out-of-service").await?;
        failed_by(tenant, "shut-down", "NodeLost").await
    })
    .await
}

async fn taint(all: &Api<Node>, node: &str, key: &str) -> Result<()> {
    let taint = json!({"key": key, "value": "e2e", "effect": "NoExecute"});
    let patch = Patch::Strategic(json!({"spec": {"taints": [taint]}}));
    all.patch(node, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// A job that needs all of a node whose Pods are less urgent, and gets it although those are held until they are counted.
async fn urgent(tenant: &Tenant<'_>, node: &str) -> Result<()> {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": URGENT}, "value": 1000,
    });
    apply(&tenant.client, "default", vec![class]).await?;
    on_node(tenant, URGENT, node, &json!({"priorityClassName": URGENT})).await?;
    tenant.create(URGENT, URGENT, whole_node()).await?;
    run_held(tenant, URGENT, 1).await?;
    Ok(())
}

#[tokio::test]
async fn pods_that_the_garbage_collector_deletes_while_the_program_is_away_are_counted_when_it_is_back()
-> Result<()> {
    let controller_manager_flags = vec![format!("--terminated-pod-gc-threshold={THRESHOLD}")];
    let options = Options { controller_manager_flags, ..Options::default() };
    let alone = Box::pin(AccountingBox::with(options)).await?;
    let mut counted = Box::pin(Counted::start_in(alone, "Exact", SETTINGS)).await?;
    let recorder = AccountingRecorder::start(counted.world.cluster.client().await?).await?;
    let tenant = counted.world.tenant("collected").await?;
    let completes = runtime("later", &json!({e2e::fixtures::COMPLETES_AFTER: "20s"}), 3, None);
    apply(&tenant.client, "default", vec![completes]).await?;
    tenant.create("collected", "later", nodes(12)).await?;
    until_ok("its Pods are there", PATIENCE, || async {
        let pods = tenant.pods_of("collected").await?;
        ensure!(pods.len() == 12, "{} are", pods.len());
        Ok(())
    })
    .await?;
    counted.program.kill9();
    tenant.becomes("collected", "Complete").await?;
    let is_deleted = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
    until_ok("those are deleted that are too many", COLLECTED_WITHIN, || async {
        let pods = tenant.pods_of("collected").await?;
        let deleted = pods.iter().filter(is_deleted).count();
        ensure!(pods.len() == 12, "{} are left of those that are held", pods.len());
        ensure!(deleted >= 12 - THRESHOLD, "{deleted} are");
        Ok(())
    })
    .await?;
    counted.program = e2e::accounting::Accounting::start(&counted.world.cluster, SETTINGS).await?;
    let status = becomes_final(&tenant, "collected").await?;
    let succeeded = PodCounts { succeeded: 12, ..PodCounts::default() };
    ensure!(status.totals.pods == succeeded && holds(&status, "Exact"), "{status:#?}");
    until_ok("they are gone", PATIENCE, || async {
        let pods = tenant.pods_of("collected").await?;
        ensure!(pods.len() <= THRESHOLD, "{} are there", pods.len());
        Ok(())
    })
    .await?;
    recorder.judge(&[&tenant.namespace], &[], &Terms::default()).await
}
