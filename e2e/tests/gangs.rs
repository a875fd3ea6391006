//! Gangs: the PodGroup of a TrainJob, of either scheduler, from the moment its kind is installed to the
//! end of the job.
//!
//! The definitions are those of their own releases. No scheduler of gangs runs here: `gang_scheduler.rs` has
//! one.

#![expect(clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::coscheduling;
use e2e::fixtures::shared::Shared;
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES_AFTER, PATIENCE, POOL, PooledBox, consistently, runtime};
use e2e::until::until_ok;
use e2e::{volcano, yaml};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use trainjob_api::conditions::{COMPLETE, FAILED};

/// A scheduler that knows gangs.
struct Scheduler {
    group: &'static str,
    version: &'static str,
    /// The definitions of its kinds.
    definitions: fn() -> Result<Vec<Value>>,
    /// The runtime's `podGroupPolicy`.
    policy: fn() -> Value,
    /// What a PodGroup says beside its members and their resources.
    more: fn() -> Value,
}

const COSCHEDULING: Scheduler = Scheduler {
    group: "scheduling.x-k8s.io",
    version: "v1alpha1",
    definitions: coscheduling::pod_group_definition,
    policy: || json!({"coscheduling": {"scheduleTimeoutSeconds": 90}}),
    more: || json!({"scheduleTimeoutSeconds": 90}),
};
const VOLCANO: Scheduler = Scheduler {
    group: "scheduling.volcano.sh",
    version: "v1beta1",
    definitions: volcano::definitions,
    policy: || json!({"volcano": {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}}}),
    more: || {
        // The definition fills in the queue.
        json!({
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
            "queue": "default",
        })
    },
};

/// Longer than an operator that is about to do something wrong hesitates.
const WINDOW: Duration = Duration::from_secs(3);

impl Scheduler {
    fn pod_groups(&self, tenant: &Tenant<'_>) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(self.group, self.version, "PodGroup");
        let kind = ApiResource::from_gvk_with_plural(&kind, "podgroups");
        Api::namespaced_with(tenant.client.clone(), &tenant.namespace, &kind)
    }

    /// Makes a runtime of three Pods that asks for a gang. Each has a name of its own: a runtime that is changed may be
    /// known to the operator as it was when the next job comes.
    async fn runtime(
        &self,
        tenant: &Tenant<'_>,
        name: &str,
        annotations: &Value,
    ) -> Result<String> {
        let name = format!("{}-{name}", tenant.namespace);
        let mut manifest = runtime(&name, annotations, 1, None);
        manifest["spec"]["podGroupPolicy"] = (self.policy)();
        manifest["spec"]["mlPolicy"]["numNodes"] = json!(3);
        let job = &mut manifest["spec"]["template"]["spec"]["replicatedJobs"][0];
        job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] =
            json!({"requests": {"cpu": "500m", "memory": "64Mi"}});
        tenant.world.cluster.apply_yaml("default", &yaml::stream(&[manifest])).await?;
        Ok(name)
    }

    /// Waits until the job has its PodGroup, and sees what it asks for.
    async fn has_group(&self, tenant: &Tenant<'_>, job: &str) -> Result<()> {
        let (groups, uid) = (self.pod_groups(tenant), tenant.jobs.get(job).await?.uid());
        until_ok(format!("{job} has its PodGroup"), PATIENCE, || async {
            let group = groups.get(job).await?;
            let owner = group.owner_references().first().map(|owner| owner.uid.clone());
            ensure!(owner == uid, "its owner is {owner:?}");
            let resources = json!({"cpu": "1500m", "memory": "192Mi"});
            let mut expected = json!({"minMember": 3, "minResources": resources});
            let (all, more) = (expected.as_object_mut(), (self.more)());
            all.context("no object")?.extend(more.as_object().cloned().unwrap_or_default());
            ensure!(group.data["spec"] == expected, "it asks for {}", group.data["spec"]);
            Ok(())
        })
        .await
    }

    async fn has_no_group(&self, tenant: &Tenant<'_>, job: &str) -> Result<()> {
        let groups = self.pod_groups(tenant);
        until_ok(format!("the PodGroup of {job} is gone"), PATIENCE, || async {
            ensure!(groups.get_opt(job).await?.is_none(), "it is there");
            Ok(())
        })
        .await
    }
}

async fn test(prefix: &str, body: impl AsyncFnOnce(&Tenant<'_>) -> Result<()>) -> Result<()> {
    // Its own: the kinds of PodGroups come while these tests run.
    static SHARED: Shared<PooledBox> = Shared::new();
    let start = async || {
        let world = POOL.take().await?.alone();
        world.start_operator().await?;
        Ok(world)
    };
    SHARED.get(start).await?.test(prefix, body).await
}

/// The life of a scheduler, from before it is installed on. One test each: what is installed stays.
async fn gangs_of(scheduler: &Scheduler, prefix: &str) -> Result<()> {
    test(prefix, async |tenant| {
        let completes =
            scheduler.runtime(tenant, "completes", &json!({COMPLETES_AFTER: "1s"})).await?;
        tenant.create("early", &completes, json!({})).await?;
        tenant.waits_because("early", "PodGroupNotServed").await?;
        ensure!(tenant.job_sets.get_opt("early").await?.is_none(), "it has a JobSet");

        let definitions = tokio::task::spawn_blocking(scheduler.definitions).await??;
        tenant.world.cluster.apply_yaml("default", &yaml::stream(&definitions)).await?;
        tenant.has_job_set("early").await?;
        tenant.becomes("early", COMPLETE).await?;
        scheduler.has_no_group(tenant, "early").await?;

        let runs = scheduler.runtime(tenant, "runs", &json!({})).await?;
        tenant.create("late", &runs, json!({"activeDeadlineSeconds": 20})).await?;
        scheduler.has_group(tenant, "late").await?;
        let job_set = tenant.has_job_set("late").await?;
        let pod = &job_set.data["spec"]["replicatedJobs"][0]["template"]["spec"]["template"];
        let metadata = &pod["metadata"];
        let mark = match scheduler.group {
            "scheduling.x-k8s.io" => &metadata["labels"]["scheduling.x-k8s.io/pod-group"],
            _ => &metadata["annotations"]["scheduling.k8s.io/group-name"],
        };
        ensure!(mark == "late", "its Pods are of no gang: {metadata}");
        tenant.becomes("late", FAILED).await?;
        scheduler.has_no_group(tenant, "late").await?;

        belongs_to_somebody_else(scheduler, tenant, &runs).await
    })
    .await
}

async fn belongs_to_somebody_else(
    scheduler: &Scheduler,
    tenant: &Tenant<'_>,
    runtime: &str,
) -> Result<()> {
    let groups = scheduler.pod_groups(tenant);
    let theirs: DynamicObject = serde_json::from_value(json!({
        "apiVersion": format!("{}/{}", scheduler.group, scheduler.version),
        "kind": "PodGroup",
        "metadata": {"name": "taken"},
        "spec": {"minMember": 7},
    }))?;
    let theirs = groups.create(&PostParams::default(), &theirs).await?;
    tenant.create("taken", runtime, json!({})).await?;
    tenant.waits_because("taken", "PodGroupConflict").await?;
    consistently("it is left alone", WINDOW, async || {
        let group = groups.get("taken").await?;
        ensure!(group.resource_version() == theirs.resource_version(), "it was changed");
        ensure!(tenant.job_sets.get_opt("taken").await?.is_none(), "the job has a JobSet");
        Ok(())
    })
    .await?;
    groups.delete("taken", &DeleteParams::default()).await?;
    scheduler.has_group(tenant, "taken").await?;
    tenant.has_job_set("taken").await?;
    Ok(())
}

#[tokio::test]
async fn gangs_of_coscheduling_are_made_once_it_is_installed_and_go_with_the_end() -> Result<()> {
    gangs_of(&COSCHEDULING, "coscheduling").await
}

#[tokio::test]
async fn gangs_of_volcano_are_made_once_it_is_installed_and_go_with_the_end() -> Result<()> {
    gangs_of(&VOLCANO, "volcano").await
}
