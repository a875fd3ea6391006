//! What a test does with jobs of a queue, and waits for.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use trainjob_api::time::Timestamp;
use trainjob_api::{TrainJob, conditions};

use super::controller::MANAGER;
use super::queues::{GPU, Queue};
use super::workload::Workload;
use crate::testenv::fixtures::status::{brief, conditions_of};
use crate::testenv::fixtures::{COMPLETES_AFTER, PATIENCE, Tenant};
use crate::testenv::until::until_ok;

/// The node selector in a patch of the first replicated job.
const NODE_SELECTOR: &str =
    "/trainingRuntimeSpec/template/spec/replicatedJobs/0/template/spec/template/spec/nodeSelector";

/// A namespace with a queue.
pub struct Case<'a> {
    /// The namespace.
    pub tenant: &'a Tenant<'a>,
    /// Its queue.
    pub queue: Queue,
    /// Its Workloads.
    pub workloads: Api<DynamicObject>,
}

/// What a job asks its queue for.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// `low` or `high`.
    pub priority: &'static str,
    /// How many nodes it trains on.
    pub nodes: u32,
    /// How many GPUs it wants of each.
    pub gpus: u32,
}

impl Ask {
    /// GPUs of one node, at low priority.
    #[must_use]
    pub const fn low(gpus: u32) -> Self {
        Self { priority: "low", nodes: 1, gpus }
    }

    /// GPUs of one node, at high priority.
    #[must_use]
    pub const fn high(gpus: u32) -> Self {
        Self { priority: "high", nodes: 1, gpus }
    }
}

/// A TrainJob with these labels that asks for GPUs, with `more` in its spec.
pub fn job(name: &str, runtime: &str, labels: &Value, ask: Ask, more: &Value) -> Result<TrainJob> {
    let resources = json!({"cpu": "1", "memory": "1Gi", GPU: ask.gpus.to_string()});
    let mut spec = json!({
        "runtimeRef": {"name": runtime},
        "trainer": {
            "numNodes": ask.nodes,
            "resourcesPerNode": {"requests": resources, "limits": resources},
        },
    });
    let fields = spec.as_object_mut().context("a spec is a map")?;
    fields.extend(more.as_object().cloned().unwrap_or_default());
    Ok(serde_json::from_value(json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }))?)
}

impl Case<'_> {
    /// Creates a job of the queue, with `more` in its spec.
    pub async fn submit(
        &self,
        name: &str,
        runtime: &str,
        ask: Ask,
        more: Value,
    ) -> Result<TrainJob> {
        self.submit_labelled(name, runtime, &self.queue.labels(ask.priority), ask, more).await
    }

    /// The same with labels of its own.
    pub async fn submit_labelled(
        &self,
        name: &str,
        runtime: &str,
        labels: &Value,
        ask: Ask,
        more: Value,
    ) -> Result<TrainJob> {
        let job = job(name, runtime, labels, ask, &more)?;
        Ok(self.tenant.jobs.create(&PostParams::default(), &job).await?)
    }

    /// The Workload of a job, if it has one.
    pub async fn workload(&self, job: &str) -> Result<Option<Workload>> {
        let all = self.workloads.list(&ListParams::default()).await?;
        Ok(all.into_iter().map(Workload).find(|workload| workload.job() == Some(job)))
    }

    /// Waits until the Workload of a job satisfies `check`, and returns it.
    pub async fn workload_is(
        &self,
        job: &str,
        what: &str,
        check: impl Fn(&Workload) -> bool,
    ) -> Result<Workload> {
        until_ok(format!("the Workload of {job} is {what}"), PATIENCE, || async {
            let workload = self.workload(job).await?.context("there is none")?;
            ensure!(check(&workload), "{}", workload.brief());
            Ok(workload)
        })
        .await
    }

    /// Waits until a job has no Workload.
    pub async fn workload_is_gone(&self, job: &str) -> Result<()> {
        until_ok(format!("the Workload of {job} is gone"), PATIENCE, || async {
            let workload = self.workload(job).await?;
            ensure!(workload.is_none(), "{:?}", workload.map(|it| it.brief()));
            Ok(())
        })
        .await
    }

    /// Waits until a job is admitted and a Pod of it runs, and returns when the job was resumed.
    pub async fn runs(&self, job: &str) -> Result<Timestamp> {
        self.workload_is(job, "admitted", |it| it.is("Admitted")).await?;
        self.tenant.runs(job).await?;
        let job = self.tenant.jobs.get(job).await?;
        let suspended = conditions_of(&job).iter().find(|it| it.type_ == conditions::SUSPENDED);
        let resumed = suspended.filter(|it| it.status == "False");
        let resumed = resumed.with_context(|| format!("not resumed: {}", said(&job)))?;
        Ok(Timestamp::from(&resumed.last_transition_time))
    }

    /// Waits until a job is queued: suspended, with a Workload that waits for quota.
    pub async fn queued(&self, job: &str) -> Result<()> {
        let waits = |it: &Workload| !it.is("QuotaReserved");
        self.workload_is(job, "waiting for quota", waits).await?;
        let stored = self.tenant.jobs.get(job).await?;
        ensure!(stored.spec.suspend == Some(true), "{job} is not suspended");
        Ok(())
    }

    /// Makes the running Pods of a job complete.
    pub async fn finish(&self, job: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {COMPLETES_AFTER: "100ms"}}}));
        for pod in self.tenant.pods_of(job).await? {
            self.tenant.pods.patch(&pod.name_any(), &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    /// Waits until a job and its Workload are gone.
    pub async fn both_gone(&self, job: &str) -> Result<()> {
        self.tenant.gone(job).await?;
        until_ok(format!("the Workload of {job} is gone"), PATIENCE, || async {
            let workload = self.workload(job).await?;
            ensure!(workload.is_none(), "{:?}", workload.map(|it| it.brief()));
            Ok(())
        })
        .await
    }

    /// The node selector that Kueue has written into a job; null if it has written none.
    pub async fn node_selector(&self, job: &str) -> Result<Value> {
        let job = serde_json::to_value(self.tenant.jobs.get(job).await?)?;
        let patches = job.pointer("/spec/runtimePatches").and_then(Value::as_array);
        let of_kueue = |patch: &&Value| patch.get("manager").is_some_and(|it| it == MANAGER);
        let patch = patches.into_iter().flatten().find(of_kueue).context("Kueue has no patch")?;
        Ok(patch.pointer(NODE_SELECTOR).cloned().unwrap_or_default())
    }

    /// The jobs of the namespace and their Workloads in a few words each.
    pub(super) async fn describe(&self) -> Result<String> {
        let mut text = String::new();
        for workload in self.workloads.list(&ListParams::default()).await? {
            let workload = Workload(workload);
            writeln!(text, "Workload {}: [{}]", workload.0.name_any(), workload.brief())?;
        }
        for job in self.tenant.jobs.list(&ListParams::default()).await? {
            let suspended = job.spec.suspend;
            writeln!(text, "TrainJob {}: suspend {suspended:?}, [{}]", job.name_any(), said(&job))?;
        }
        Ok(text)
    }
}

fn said(job: &TrainJob) -> String {
    brief(conditions_of(job))
}
