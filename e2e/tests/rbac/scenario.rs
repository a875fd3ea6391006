//! What TrainJobs go through, so that the operator needs each of its permissions somewhere.

use anyhow::{Context, Result, ensure};
use e2e::fixtures::tenant::Tenant;
use e2e::fixtures::{COMPLETES, COMPLETES_AFTER, MPI, PATIENCE, RUNS, fillers, mpi, runtime};
use e2e::rbac::Grant;
use e2e::until::until_ok;
use e2e::yaml;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use trainjob_api::conditions::SUSPENDED;
use trainjob_api::constants::LEGACY_FINALIZER;
use trainjob_api::{ClusterTrainingRuntime, TrainingRuntime};

use super::gangs::Scheduler;

/// The TrainJob of a scenario.
pub(crate) const JOB: &str = "job";
/// By which the operators of a namespace elect their leader.
const LEASE: &str = "trainer.kubeflow.org";
/// A label that a patch of the runtime gives the JobSet.
const LABEL: &str = "e2e.trainjob.dev/patched";

/// A scenario about one namespace and the operator that works there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A job completes, and its TTL deletes it.
    Ttl,
    /// A job is stopped by its deadline, which is told, and deleted when it is released.
    Deadline,
    /// A suspended job is changed.
    Changed,
    /// A job needs keys.
    Keys,
    /// What MPI reads is there already, and says something else.
    Outdated,
    /// The JobSet of a job vanishes, and is made again.
    Vanished,
    /// The name of a job's snapshot is taken.
    Taken,
    /// A suspended job of a gang is changed, resumed, and completes.
    Gang(Scheduler),
    /// The name of a job's gang is taken, which the watch has not shown yet.
    TakenGang(Scheduler),
    /// A runtime is freed from the finalizer that Kubeflow Trainer once put on it.
    Freed,
    /// The same for one of the whole cluster.
    FreedClusterWide,
    /// A runtime has made room for others when a job needs it.
    Evicted,
    /// The same for one of the whole cluster.
    EvictedClusterWide,
    /// The operator waits for a Lease that somebody else holds, and takes it when it is given up.
    Follows,
    /// The operator leads, and goes on leading.
    Leads,
}

impl Scenario {
    /// All of them. Where several need a permission, the first is played without it.
    pub(crate) const ALL: [Self; 17] = [
        Self::Ttl,
        Self::Deadline,
        Self::Changed,
        Self::Keys,
        Self::Outdated,
        Self::Vanished,
        Self::Taken,
        Self::Gang(Scheduler::Coscheduling),
        Self::Gang(Scheduler::Volcano),
        Self::TakenGang(Scheduler::Coscheduling),
        Self::TakenGang(Scheduler::Volcano),
        Self::Freed,
        Self::FreedClusterWide,
        Self::Evicted,
        Self::EvictedClusterWide,
        Self::Follows,
        Self::Leads,
    ];

    /// Whether it cannot come to its end without a permission that it takes. Every operator looks for gangs, and
    /// tells what it does to whom it may concern; only one scenario waits for that.
    pub(crate) fn needs(self, grant: &Grant) -> bool {
        match self {
            _ if grant.resource == "events" => self == Self::Deadline,
            _ if grant.resource != "podgroups" => true,
            Self::Gang(scheduler) | Self::TakenGang(scheduler) => grant.group == scheduler.group(),
            _ => false,
        }
    }

    /// Whether its operator has to have little room.
    pub(crate) const fn lacks_room(self) -> bool {
        matches!(self, Self::Evicted | Self::EvictedClusterWide)
    }

    /// Whether its operator takes part in leader election.
    pub(crate) const fn elects(self) -> bool {
        matches!(self, Self::Follows | Self::Leads)
    }

    /// Makes what has to be there before its operator.
    pub(crate) async fn prepare(self, tenant: &Tenant<'_>) -> Result<()> {
        if self != Self::Follows {
            return Ok(());
        }
        // Nobody learns in time that it was given up, except whoever follows it.
        let spec = json!({"holderIdentity": "somebody", "leaseDurationSeconds": 3600});
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE},
            "spec": spec,
        });
        apply(tenant, &lease).await
    }

    /// Plays it with an operator that has been started.
    pub(crate) async fn play(self, tenant: &Tenant<'_>) -> Result<()> {
        match self {
            Self::Ttl => {
                tenant.create(JOB, COMPLETES, json!({"ttlSecondsAfterFinished": 1})).await?;
                tenant.gone(JOB).await
            }
            Self::Deadline => {
                let spec = json!({"activeDeadlineSeconds": 10, "ttlSecondsAfterFinished": 1});
                tenant.create(JOB, RUNS, spec).await?;
                tenant.has_job_set(JOB).await?;
                tenant.gone(JOB).await?;
                tenant.tells(JOB, "DeadlineExceeded").await.map(|_| ())
            }
            Self::Changed => changed(tenant).await,
            Self::Keys => {
                tenant.create(JOB, MPI, json!({})).await?;
                tenant.has_job_set(JOB).await.map(|_| ())
            }
            Self::Outdated => outdated(tenant).await,
            Self::Vanished => {
                tenant.create(JOB, RUNS, json!({})).await?;
                tenant.has_job_set(JOB).await?;
                tenant.delete_job_set(JOB).await?;
                tenant.has_job_set(JOB).await.map(|_| ())
            }
            Self::Taken => {
                let name = format!("{JOB}-runtime-snapshot");
                let theirs = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                });
                apply(tenant, &theirs).await?;
                tenant.create(JOB, RUNS, json!({})).await?;
                tenant.waits_because(JOB, "SnapshotConflict").await.map(|_| ())
            }
            Self::Gang(scheduler) => gang(tenant, scheduler).await,
            Self::TakenGang(scheduler) => {
                apply(tenant, &scheduler.pod_group(JOB)).await?;
                let name = gang_runtime(tenant, scheduler).await?;
                tenant.create(JOB, &name, json!({})).await?;
                tenant.waits_because(JOB, "PodGroupConflict").await.map(|_| ())
            }
            Self::Freed => freed(tenant, false).await,
            Self::FreedClusterWide => freed(tenant, true).await,
            Self::Evicted => evicted(tenant, "TrainingRuntime").await,
            Self::EvictedClusterWide => evicted(tenant, "ClusterTrainingRuntime").await,
            Self::Follows => {
                let given_up = Patch::Merge(json!({"spec": {"holderIdentity": ""}}));
                leases(tenant).patch(LEASE, &PatchParams::default(), &given_up).await?;
                leads(tenant).await.map(|_| ())
            }
            Self::Leads => goes_on_leading(tenant).await,
        }
    }
}

async fn apply(tenant: &Tenant<'_>, object: &Value) -> Result<()> {
    let text = yaml::stream(std::slice::from_ref(object));
    tenant.world.cluster.apply_yaml(&tenant.namespace, &text).await?;
    Ok(())
}

/// A job waits for its runtime, so that there is time to give it what it has not made itself.
async fn outdated(tenant: &Tenant<'_>) -> Result<()> {
    let name = &tenant.namespace;
    tenant.create(JOB, name, json!({})).await?;
    let job = tenant.becomes(JOB, "Waiting").await?;
    let hostfile = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("{JOB}-mpi-hostfile"),
            "ownerReferences": [job.controller_owner_ref(&()).context("it has no UID")?],
        },
        "data": {"hostfile": "none"},
    });
    apply(tenant, &hostfile).await?;
    let mut mpi = mpi();
    mpi["metadata"]["name"] = json!(name);
    apply(tenant, &mpi).await?;
    tenant.has_job_set(JOB).await.map(|_| ())
}

async fn changed(tenant: &Tenant<'_>) -> Result<()> {
    tenant.create(JOB, RUNS, json!({"suspend": true})).await?;
    tenant.becomes(JOB, SUSPENDED).await?;
    let template = json!({"metadata": {"labels": {LABEL: "yes"}}});
    let patch = json!({
        "manager": "e2e.trainjob.dev/user",
        "trainingRuntimeSpec": {"template": template},
    });
    tenant.patch(JOB, &json!({"spec": {"runtimePatches": [patch]}})).await?;
    until_ok("the JobSet is as its TrainJob says", PATIENCE, || async {
        let job_set = tenant.job_sets.get(JOB).await?;
        ensure!(job_set.labels().contains_key(LABEL), "its labels are {:?}", job_set.labels());
        Ok(())
    })
    .await
}

async fn gang_runtime(tenant: &Tenant<'_>, scheduler: Scheduler) -> Result<String> {
    let delay = json!({COMPLETES_AFTER: "100ms"});
    let name = tenant.namespace.clone();
    let mut manifest = runtime(&name, &delay, 1, None);
    let spec = manifest.pointer_mut("/spec").and_then(Value::as_object_mut);
    spec.context("no spec")?.insert("podGroupPolicy".to_owned(), scheduler.policy());
    apply(tenant, &manifest).await?;
    Ok(name)
}

async fn gang(tenant: &Tenant<'_>, scheduler: Scheduler) -> Result<()> {
    let name = gang_runtime(tenant, scheduler).await?;
    tenant.create(JOB, &name, json!({"suspend": true})).await?;
    tenant.becomes(JOB, SUSPENDED).await?;
    has_members(tenant, scheduler, 1).await?;
    tenant.patch(JOB, &json!({"spec": {"trainer": {"numNodes": 2}}})).await?;
    has_members(tenant, scheduler, 2).await?;
    tenant.patch(JOB, &json!({"spec": {"suspend": false}})).await?;
    let groups = scheduler.pod_groups(tenant);
    until_ok("the PodGroup is gone", PATIENCE, || async {
        ensure!(groups.get_opt(JOB).await?.is_none(), "it is there");
        Ok(())
    })
    .await
}

async fn has_members(tenant: &Tenant<'_>, scheduler: Scheduler, members: i64) -> Result<()> {
    let groups = scheduler.pod_groups(tenant);
    until_ok(format!("the PodGroup is of {members}"), PATIENCE, || async {
        let group = groups.get(JOB).await?;
        let spec = group.data.get("spec").context("no spec")?;
        ensure!(spec.get("minMember") == Some(&json!(members)), "it is {spec}");
        Ok(())
    })
    .await
}

async fn freed(tenant: &Tenant<'_>, cluster_wide: bool) -> Result<()> {
    let name = &tenant.namespace;
    let mut manifest = runtime(name, &json!({}), 1, None);
    manifest["metadata"]["finalizers"] = json!([LEGACY_FINALIZER]);
    if !cluster_wide {
        manifest["kind"] = json!("TrainingRuntime");
    }
    apply(tenant, &manifest).await?;
    let namespaced: Api<TrainingRuntime> = Api::namespaced(tenant.client.clone(), name);
    let wide: Api<ClusterTrainingRuntime> = Api::all(tenant.client.clone());
    until_ok("the runtime is free", PATIENCE, || async {
        let held = if cluster_wide {
            wide.get(name).await?.metadata.finalizers
        } else {
            namespaced.get(name).await?.metadata.finalizers
        };
        ensure!(held.unwrap_or_default().is_empty(), "it is held");
        Ok(())
    })
    .await
}

/// The job that names the last of those that take its room is made when all of them are known.
async fn evicted(tenant: &Tenant<'_>, kind: &str) -> Result<()> {
    let name = &tenant.namespace;
    let mut manifest = runtime(name, &json!({}), 1, None);
    manifest["kind"] = json!(kind);
    apply(tenant, &manifest).await?;
    for filler in fillers(kind, name) {
        apply(tenant, &filler).await?;
    }
    let of_kind = json!({"runtimeRef": {"name": "", "kind": kind}});
    tenant.create("last", &format!("{name}-4"), of_kind.clone()).await?;
    tenant.has_job_set("last").await?;
    tenant.create(JOB, name, of_kind).await?;
    tenant.has_job_set(JOB).await.map(|_| ())
}

fn leases(tenant: &Tenant<'_>) -> Api<Lease> {
    Api::namespaced(tenant.client.clone(), &tenant.namespace)
}

/// Waits until somebody leads; returns when they renewed the Lease.
async fn leads(tenant: &Tenant<'_>) -> Result<MicroTime> {
    until_ok("somebody leads", PATIENCE, async || {
        let spec = leases(tenant).get(LEASE).await?.spec.context("an empty Lease")?;
        ensure!(spec.holder_identity.is_some_and(|holder| !holder.is_empty()), "nobody leads");
        spec.renew_time.context("it was never renewed")
    })
    .await
}

async fn goes_on_leading(tenant: &Tenant<'_>) -> Result<()> {
    let first = leads(tenant).await?;
    until_ok("the Lease is renewed", PATIENCE, async || {
        ensure!(leads(tenant).await? != first, "it is not");
        Ok(())
    })
    .await
}
