//! A control plane for the accounting program and the raw client, and the Pods in it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use trainjob_api::TrainJob;
use trainjob_api::lifecycle::v1alpha1::{
    ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
};

use crate::bench::calls::{Micros, Noted};
use crate::bench::jobs::{on_torch, side_by_side};
use crate::bench::progress::Progress;
use crate::bench::rig::{RAW, audit_flags, noted, raw_client};
use crate::testenv::accounting::{
    Accounting, NAMESPACE, SERVICE_ACCOUNT, install_accounting, install_raw_client,
};
use crate::testenv::apply::apply;
use crate::testenv::cluster::{Cluster, Options};
use crate::testenv::until::until_ok;

/// Pods of a small TrainJob.
pub(super) const GANG: usize = 8;
/// How long the program may take to list everything, or to count it.
pub(super) const WITHIN: Duration = Duration::from_mins(15);

/// The control plane.
pub(super) struct Rig {
    pub(super) cluster: Cluster,
    pub(super) admin: Client,
    pub(super) raw: Client,
    credentials: PathBuf,
    pub(super) progress: Progress,
}

/// A Pod that is there.
#[derive(Clone)]
pub(super) struct There {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl Rig {
    /// Starts it.
    pub(super) async fn start(fsync: bool, progress: &Progress) -> Result<Self> {
        progress.step("starting a control plane", 0);
        let apiserver_flags = audit_flags().into();
        let options = Options { fsync, apiserver_flags, crds: true, ..Options::bare() };
        let cluster = Cluster::start(options).await?;
        install_accounting(&cluster).await?;
        install_raw_client(&cluster, RAW).await?;
        let credentials = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
        let raw = cluster.service_account_kubeconfig(RAW, SERVICE_ACCOUNT).await?;
        let (raw, admin) = (raw_client(&raw).await?, cluster.client().await?);
        Ok(Self { cluster, admin, raw, credentials, progress: progress.clone() })
    }

    /// Everything that was asked for so far.
    pub(super) async fn noted(&self) -> Result<Noted> {
        noted(&self.cluster, &self.raw).await
    }

    /// A namespace in which Pods can be stored.
    pub(super) async fn namespace(&self, prefix: &str) -> Result<String> {
        let namespace = self.cluster.namespace(prefix).await?;
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        apply(&self.admin, &namespace, vec![account]).await?;
        Ok(namespace)
    }

    /// Starts the program as it ships, with a Lease of its own.
    pub(super) async fn launch(&self) -> Result<Accounting> {
        let program = Accounting::as_shipped(&self.cluster, self.credentials.clone()).await?;
        program.leads().await?;
        Ok(program)
    }

    /// Waits until so many Pods are open in the eyes of the program.
    pub(super) async fn open(&self, program: &Accounting, count: usize) -> Result<()> {
        self.progress.step("the program knows of open Pods", count);
        until_ok("all that are open are known", WITHIN, || async {
            let open = program.metric("trainjob_accounting_open_pods").await?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let open = open as usize;
            self.progress.at(open);
            ensure!(open == count, "{open} Pods");
            Ok(())
        })
        .await
    }

    /// TrainJobs of so many Pods each, which run.
    pub(super) async fn jobs(
        &self,
        step: &str,
        namespace: &str,
        (jobs, pods): (usize, usize),
    ) -> Result<Vec<There>> {
        self.progress.step(step, jobs * pods);
        let api: Api<TrainJob> = Api::namespaced(self.admin.clone(), namespace);
        let wanted = (0..jobs).map(|number| TrainJob::new(&format!("job-{number:06}"), on_torch()));
        let created = side_by_side(wanted.collect(), move |job| {
            let api = api.clone();
            async move { Ok(api.create(&PostParams::default(), &job).await?) }
        })
        .await?;
        let numbered = |job: TrainJob| (0..pods).map(move |number| (job.clone(), number));
        let pods = created.into_iter().flat_map(numbered).collect();
        let (client, progress) = (self.admin.clone(), self.progress.clone());
        side_by_side(pods, move |(job, number)| {
            let (client, progress) = (client.clone(), progress.clone());
            async move {
                let there = running(&client, &job, number).await?;
                progress.one();
                Ok(there)
            }
        })
        .await
    }

    /// All of these have succeeded.
    pub(super) async fn end(&self, pods: Vec<There>) -> Result<()> {
        self.progress.step("the Pods end", pods.len());
        let (client, progress) = (self.admin.clone(), self.progress.clone());
        side_by_side(pods, move |there| {
            let (client, progress) = (client.clone(), progress.clone());
            async move {
                succeed(&client, &there).await?;
                progress.one();
                Ok(())
            }
        })
        .await?;
        Ok(())
    }
}

/// Creates a Pod of a TrainJob that runs on a node.
pub(super) async fn running(client: &Client, job: &TrainJob, number: usize) -> Result<There> {
    let namespace = job.namespace().context("no namespace")?;
    let (owner, uid) = (job.name_any(), job.uid().context("no UID")?);
    let name = format!("{owner}-{number:06}");
    let pod = json!({
        "metadata": {
            "name": name,
            "finalizers": [ACCOUNTING_FINALIZER],
            "labels": {
                TRAIN_JOB_NAME_LABEL: owner,
                TRAIN_JOB_UID_LABEL: uid,
                "jobset.sigs.k8s.io/jobset-uid": uid,
                "jobset.sigs.k8s.io/replicatedjob-name": "node",
                "jobset.sigs.k8s.io/restart-attempt": "0",
            },
        },
        "spec": {
            "nodeName": "node",
            "restartPolicy": "Never",
            "containers": [{
                "name": "node",
                "image": "none",
                "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "1"}},
            }],
        },
    });
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let stored = pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    Ok(There { namespace, name, uid: stored.uid().context("no UID")? })
}

/// A Pod has done its work.
pub(super) async fn succeed(client: &Client, there: &There) -> Result<Micros> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &there.namespace);
    let sent = Micros::now();
    let status = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status(&there.name, &PatchParams::default(), &status).await?;
    Ok(sent)
}

/// Somebody deletes a Pod. Returns when.
pub(super) async fn delete(client: &Client, there: &There) -> Result<Micros> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &there.namespace);
    let sent = Micros::now();
    pods.delete(&there.name, &DeleteParams::default().grace_period(0)).await?;
    Ok(sent)
}

/// Releases a Pod as the program does.
pub(super) async fn release(client: &Client, there: &There) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &there.namespace);
    let patch = Patch::Strategic(json!({"metadata": {
        "uid": there.uid,
        "$deleteFromPrimitiveList/finalizers": [ACCOUNTING_FINALIZER],
        "annotations": {ACCOUNTED_ANNOTATION: there.uid},
    }}));
    pods.patch_metadata(&there.name, &PatchParams::default(), &patch).await?;
    Ok(())
}
