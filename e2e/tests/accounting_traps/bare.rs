//! A box in which nobody runs Pods: they are stored with the status that a kubelet would have written.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::accounting::{Accounting, NAMESPACE, SERVICE_ACCOUNT, holds, install_accounting, status};
use e2e::apply::apply;
use e2e::cluster::Options;
use e2e::fixtures::status::now;
use e2e::fixtures::{RUNS, Tenant, World};
use e2e::until::until_ok;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus;
use trainjob_api::lifecycle::v1alpha1::{
    ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
};
use trainjob_api::time::Timestamp;

use super::{SETTINGS, is_held};

/// How long it may take to count all Pods.
const WITHIN: Duration = Duration::from_mins(10);
/// Requests under way.
const AT_ONCE: usize = 32;
/// For how long a Pod has run of which nothing else is said.
pub(super) const SECONDS: u32 = 100;

/// A Pod that is to be stored.
pub(super) struct Wanted {
    pub(super) number: usize,
    pub(super) job: String,
    pub(super) restart: usize,
    pub(super) requests: Value,
    pub(super) status: Value,
}

/// A box in which nobody runs Pods, with a program that counts them.
pub(super) struct Bare {
    world: World,
    program: Accounting,
}

impl Bare {
    pub(super) async fn start() -> Result<Self> {
        let world = Box::pin(World::without_operator(Options::bare())).await?;
        install_accounting(&world.cluster).await?;
        let kubeconfig =
            world.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        // Nobody would start it again where the API server has too much to do for it to renew a Lease.
        let program = Accounting::unelected(&world.cluster, SETTINGS, kubeconfig).await?;
        program.wait_ready().await?;
        program.leads().await?;
        Ok(Self { world, program })
    }

    /// A namespace in which Pods can be stored, with a TrainJob of this name.
    pub(super) async fn tenant(&self, job: &str) -> Result<(Tenant<'_>, String)> {
        let tenant = self.world.tenant(job).await?;
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        apply(&tenant.client, &tenant.namespace, vec![account]).await?;
        let uid = tenant.create(job, RUNS, json!({})).await?.uid().context("no UID")?;
        Ok((tenant, uid))
    }

    /// Waits until the program knows of so many Pods that are not counted.
    pub(super) async fn open(&self, count: usize) -> Result<()> {
        until_ok("all Pods are known", WITHIN, || async {
            let open = self.program.metric("trainjob_accounting_open_pods").await?;
            ensure!(format!("{open:.0}") == count.to_string(), "{open}");
            Ok(())
        })
        .await
    }

    /// The TrainJob ends. Waits until its record is final; then no Pod is held.
    pub(super) async fn ends(
        &self,
        tenant: &Tenant<'_>,
        job: &str,
        kind: &str,
    ) -> Result<TrainJobRecordStatus> {
        let condition = json!({
            "type": kind, "status": "True", "reason": "Over", "message": "",
            "lastTransitionTime": now().to_string(),
        });
        let over = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        tenant.jobs.patch_status(job, &PatchParams::default(), &over).await?;
        let is_final = until_ok("the record is final", WITHIN, || async {
            let status = status(tenant, job).await?;
            let left = status.totals.pods.active + status.settling.len() as u64;
            ensure!(holds(&status, "Final"), "{left} are left");
            Ok(status)
        });
        let status = is_final.await.with_context(|| self.program.last_logged())?;
        let pods = tenant.pods.list(&ListParams::default()).await?.items;
        ensure!(!pods.iter().any(is_held), "one is held");
        Ok(status)
    }
}

/// Stores a Pod that runs.
pub(super) async fn store(
    tenant: &Tenant<'_>,
    (job, uid): (&str, &str),
    wanted: &Wanted,
) -> Result<()> {
    let pod = json!({
        "metadata": {
            "name": format!("{job}-{}", wanted.number),
            "finalizers": [ACCOUNTING_FINALIZER],
            "labels": {
                TRAIN_JOB_NAME_LABEL: job,
                TRAIN_JOB_UID_LABEL: uid,
                "jobset.sigs.k8s.io/jobset-uid": uid,
                "jobset.sigs.k8s.io/replicatedjob-name": wanted.job,
                "jobset.sigs.k8s.io/restart-attempt": wanted.restart.to_string(),
            },
        },
        "spec": {
            "nodeName": "node",
            "restartPolicy": "Never",
            "containers": [{
                "name": "node", "image": "none",
                "resources": {"requests": wanted.requests, "limits": wanted.requests},
            }],
        },
    });
    tenant.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    Ok(())
}

/// It ends as it has to.
pub(super) async fn end(tenant: &Tenant<'_>, job: &str, wanted: &Wanted) -> Result<()> {
    let name = format!("{job}-{}", wanted.number);
    let ended = Patch::Merge(json!({"status": wanted.status}));
    tenant.pods.patch_status(&name, &PatchParams::default(), &ended).await?;
    Ok(())
}

pub(super) async fn each<'a, F: Future<Output = Result<()>>>(
    all: &'a [Wanted],
    act: impl Fn(&'a Wanted) -> F,
) -> Result<()> {
    stream::iter(all).map(act).buffer_unordered(AT_ONCE).try_collect().await
}

/// The status of a Pod that has run for [`SECONDS`].
pub(super) fn ran(exit_code: usize, message: &str) -> Value {
    let end = Timestamp(now().0 - 10);
    ran_between(Timestamp(end.0 - i64::from(SECONDS)), end, exit_code, message)
}

/// The status of a Pod that was bound then, by the clock of the control plane, and ended then, by that of its node.
pub(super) fn ran_between(
    bound: Timestamp,
    end: Timestamp,
    exit_code: usize,
    message: &str,
) -> Value {
    let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
    json!({
        "phase": phase,
        "conditions": [{
            "type": "PodScheduled", "status": "True", "lastTransitionTime": bound.to_string(),
        }],
        "containerStatuses": [{
            "name": "node", "image": "none", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {
                "exitCode": exit_code, "message": message, "finishedAt": end.to_string(),
            }},
        }],
    })
}
