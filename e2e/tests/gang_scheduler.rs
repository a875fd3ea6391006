//! Gangs under a real scheduler that knows them: coscheduling, on two nodes of eight GPUs.
//!
//! Each Pod asks for a whole node, so a gang of two fits when nothing else runs, and only then. What wakes a gang
//! that waits is the change of another PodGroup: its Pods have ended. So all jobs here are gangs, if only of one.

#![expect(clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::cluster::Options;
use e2e::coscheduling::{Coscheduling, SCHEDULER_NAME};
use e2e::fixtures::shared::Shared;
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES_AFTER, PATIENCE, World, consistently, runtime};
use e2e::until::until_ok;
use e2e::yaml;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use trainjob_api::conditions::COMPLETE;

/// A runtime of one Pod that takes a whole node.
const SINGLE: &str = "single";
/// A runtime of two such Pods.
const GANG: &str = "gang";

/// Longer than the scheduler takes to bind a Pod that it wants to bind.
const WINDOW: Duration = Duration::from_secs(3);

/// Runs one test with both nodes to itself, and frees them.
async fn test(prefix: &str, body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    static SHARED: Shared<(World, Coscheduling)> = Shared::new();
    static NODES: Mutex<()> = Mutex::const_new(());
    let shared = SHARED.get(start).await?;
    let _nodes = NODES.lock().await;
    let (world, _scheduler) = &*shared;
    world
        .test(prefix, async |tenant| {
            // On the heap: the future of a long test is large.
            Box::pin(body(tenant)).await?;
            for job in tenant.jobs.list(&ListParams::default()).await? {
                remove(tenant, &job.metadata.name.unwrap_or_default()).await?;
            }
            Ok(())
        })
        .await
}

async fn start() -> Result<(World, Coscheduling)> {
    let options = Options { nodes: Some(2), ..Options::default() };
    let world = World::without_operator(options).await?;
    let scheduler = Coscheduling::start(&world.cluster).await?;
    world.start_operator().await?;
    let runtimes = [gang(SINGLE, 1), gang(GANG, 2)];
    world.cluster.apply_yaml("default", &yaml::stream(&runtimes)).await?;
    Ok((world, scheduler))
}

/// A runtime of so many Pods, each of which takes a whole node.
fn gang(name: &str, count: usize) -> Value {
    let mut manifest = runtime(name, &json!({}), 1, None);
    manifest["spec"]["mlPolicy"]["numNodes"] = json!(count);
    manifest["spec"]["podGroupPolicy"] = json!({"coscheduling": {"scheduleTimeoutSeconds": 10}});
    let job = &mut manifest["spec"]["template"]["spec"]["replicatedJobs"][0];
    let pod = &mut job["template"]["spec"]["template"]["spec"];
    pod["schedulerName"] = json!(SCHEDULER_NAME);
    pod["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": "8"}});
    manifest
}

fn pod_groups(tenant: &Tenant<'_>) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("scheduling.x-k8s.io", "v1alpha1", "PodGroup");
    let kind = ApiResource::from_gvk_with_plural(&kind, "podgroups");
    Api::namespaced_with(tenant.client.clone(), &tenant.namespace, &kind)
}

/// The node of each Pod that has one.
fn nodes(pods: &[Pod]) -> Vec<&str> {
    pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref()).collect()
}

/// Whether the scheduler has looked at a Pod and found no place for it.
fn is_unschedulable(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|it| it.type_ == "PodScheduled" && it.reason.as_deref() == Some("Unschedulable"))
}

/// Waits until both Pods of a gang run, each on a node of its own.
async fn gang_runs(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    until_ok(format!("both Pods of {job} run"), PATIENCE, || async {
        let pods = tenant.pods_of(job).await?;
        let nodes: BTreeSet<&str> = nodes(&pods).into_iter().collect();
        ensure!(pods.len() == 2 && nodes.len() == 2, "{} Pods on {nodes:?}", pods.len());
        let running = pods.iter().filter(|pod| {
            pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
        });
        ensure!(running.count() == 2, "not all of them run");
        Ok(())
    })
    .await
}

/// Waits until the last Pod of a gang has ended, so that those it gets when it is resumed are all it has.
async fn has_no_pods(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    until_ok(format!("{job} has no Pods"), PATIENCE, || async {
        let pods = tenant.pods_of(job).await?;
        ensure!(pods.is_empty(), "{} of them are there, on {:?}", pods.len(), nodes(&pods));
        Ok(())
    })
    .await
}

/// Waits until the scheduler has refused both Pods of a gang, and sees that it goes on to bind neither.
async fn gang_waits(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    until_ok(format!("the scheduler has looked at {job}"), PATIENCE, || async {
        let pods = tenant.pods_of(job).await?;
        let refused = pods.iter().filter(|pod| is_unschedulable(pod)).count();
        ensure!(refused == 2, "{refused} of its {} Pods are refused", pods.len());
        Ok(())
    })
    .await?;
    consistently("none of its Pods holds a node", WINDOW, async || {
        let pods = tenant.pods_of(job).await?;
        ensure!(nodes(&pods).is_empty(), "they are on {:?}", nodes(&pods));
        Ok(())
    })
    .await
}

/// Lets the Pods of a job complete, and waits until the job has.
async fn complete(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    let completes = json!({"metadata": {"annotations": {
        COMPLETES_AFTER: "0s",
    }}});
    for pod in tenant.pods_of(job).await? {
        let name = pod.metadata.name.unwrap_or_default();
        let patch = Patch::Merge(&completes);
        tenant.pods.patch(&name, &PatchParams::default(), &patch).await?;
    }
    tenant.becomes(job, COMPLETE).await?;
    Ok(())
}

async fn remove(tenant: &Tenant<'_>, job: &str) -> Result<()> {
    tenant.delete(job).await?;
    tenant.gone(job).await?;
    tenant.released(job).await
}

#[tokio::test]
async fn a_gang_that_does_not_fit_holds_no_node_and_starts_when_another_job_ends() -> Result<()> {
    test("fits", async |tenant| {
        tenant.create("occupant", SINGLE, json!({})).await?;
        tenant.runs("occupant").await?;
        tenant.create("gang", GANG, json!({})).await?;
        gang_waits(tenant, "gang").await?;

        complete(tenant, "occupant").await?;
        gang_runs(tenant, "gang").await
    })
    .await
}

#[tokio::test]
async fn a_suspended_gang_frees_its_nodes_and_resumes_as_a_whole() -> Result<()> {
    test("suspends", async |tenant| {
        tenant.create("gang", GANG, json!({})).await?;
        gang_runs(tenant, "gang").await?;
        tenant.patch("gang", &json!({"spec": {"suspend": true}})).await?;
        has_no_pods(tenant, "gang").await?;
        tenant.create("occupant", SINGLE, json!({})).await?;
        tenant.runs("occupant").await?;

        tenant.patch("gang", &json!({"spec": {"suspend": false}})).await?;
        gang_waits(tenant, "gang").await?;
        complete(tenant, "occupant").await?;
        gang_runs(tenant, "gang").await
    })
    .await
}

#[tokio::test]
async fn a_gang_that_waits_for_room_meets_its_deadline() -> Result<()> {
    test("waits", async |tenant| {
        tenant.create("occupant", SINGLE, json!({})).await?;
        tenant.runs("occupant").await?;
        tenant.create("gang", GANG, json!({"activeDeadlineSeconds": 20})).await?;
        gang_waits(tenant, "gang").await?;

        tenant.fails_by_deadline("gang").await?;
        tenant.released("gang").await?;
        let groups = pod_groups(tenant);
        until_ok("its PodGroup is gone", PATIENCE, || async {
            ensure!(groups.get_opt("gang").await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
        tenant.runs("occupant").await?;
        Ok(())
    })
    .await
}
