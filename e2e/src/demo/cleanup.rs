//! The second act: retention policies show what they would delete, and then delete it.
//!
//! Finished Jobs, JobSets and the Workloads that a real Kueue has made of Jobs are cleaned up by the real retention engine, with the
//! rights that the chart gives it. One Job is held, one still runs. The [`verdict`] is drawn from what the API server has
//! noted of the engine's requests.

pub mod verdict;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::demo::cleanup::verdict::{Deletion, Verdict};
use crate::demo::clock::{Timestamp, now};
use crate::demo::setup::{Setup, audibly, say};
use crate::testenv::fixtures::requests_of;
use crate::testenv::kueue::{Kueue, KueueOptions, Queue, QueueOptions, workloads};
use crate::testenv::until::until_ok;
use crate::testenv::{apply, workspace, yaml};

/// Who the engine is.
const USER: &str = "system:serviceaccount:kubeflow-system:trainjob-operator-retention";
/// How long a step may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// The policies, each with how many objects it would delete, and how many it leaves to their owners.
const POLICIES: [(&str, u64, u64); 3] = [("jobs", 2, 2), ("jobsets", 2, 0), ("workloads", 3, 0)];
/// What has to go, by resource and name.
const EXPECTED: [(&str, &str); 4] =
    [("jobs", "report-a"), ("jobs", "report-b"), ("jobsets", "sweep-a"), ("jobsets", "sweep-b")];
/// The Jobs that have to stay.
const KEPT: [&str; 2] = ["held", "running"];

/// Plays the second act; returns what is to be said of it, and the Kueue that has joined: without it the API server would
/// refuse TrainJobs, which its webhooks see.
pub async fn play(setup: &Setup) -> Result<(Verdict, Kueue)> {
    let client = &setup.client;
    say("Second act: retention policies. Kueue joins, and queues Jobs");
    let kueue = Kueue::start(&setup.release.cluster, KueueOptions::default());
    let kueue = audibly("starting Kueue", kueue).await?;
    let act = Act {
        client: client.clone(),
        namespace: setup.release.cluster.namespace("cleanup").await?,
    };
    Queue::create(client, &act.namespace, &QueueOptions::default()).await?;
    act.apply("finished").await?;
    audibly("waiting until Jobs, JobSets and Workloads are finished", act.finished()).await?;
    say("4 Jobs and 2 JobSets: one Job is held, one still runs, all else is finished");

    act.apply("policies").await?;
    say("three policies in Audit: what is finished goes after 3 seconds");
    audibly("waiting until the policies have looked", act.shown()).await?;
    act.has_everything().await.context("something was deleted in Audit")?;
    let enforced = now();
    act.enforce().await?;
    say("nothing was deleted. The policies are set to Enforce");
    audibly("waiting until it is deleted", act.cleaned_up()).await?;
    say("deleted. The held Job and the running one have stayed");
    let requests = requests_of(setup.release.cluster.folder(), USER)?;
    let deletions: Vec<Deletion> = requests.iter().filter_map(Deletion::of).collect();
    Ok((Verdict::of(&deletions, enforced, &EXPECTED, &KEPT), kueue))
}

struct Act {
    client: Client,
    namespace: String,
}

impl Act {
    async fn apply(&self, file: &str) -> Result<()> {
        let text = workspace::read(&format!("examples/demo/{file}.yaml"))?;
        apply::apply(&self.client, &self.namespace, yaml::documents(&text)?).await?;
        Ok(())
    }

    /// Waits until all is finished that is to be, for long enough that it is due.
    async fn finished(&self) -> Result<()> {
        until_ok("all of it is finished", PATIENCE, || async {
            for (kind, condition, count) in [
                (Kind::Jobs, "Complete", 3),
                (Kind::JobSets, "Completed", 2),
                (Kind::Workloads, "Finished", 3),
            ] {
                let objects = self.list(kind).await?;
                let ended = objects.iter().filter_map(|object| ended_at(object, condition));
                let due = ended.filter(|at| now().duration_since(*at).as_secs() > 3).count();
                ensure!(due == count, "{due} of {count} {kind:?}");
            }
            Ok(())
        })
        .await
    }

    /// Waits until each policy shows what it would delete, and says so.
    async fn shown(&self) -> Result<()> {
        for (name, count, owned) in POLICIES {
            let status = until_ok(format!("policy {name} has looked"), PATIENCE, || async {
                let policy = self.policies().get(name).await?;
                let status = policy.data.get("status").cloned().context("no status")?;
                let found = ["/wouldDelete/now", "/counts/owned"].map(|it| number(&status, it));
                ensure!(found == [count, owned], "{status}");
                Ok(status)
            })
            .await?;
            let held = number(&status, "/counts/held");
            say(&format!("  {name:<10} would delete {count}; {held} held, {owned} with an owner"));
            for next in status.get("next").and_then(Value::as_array).into_iter().flatten() {
                let text =
                    |field: &str| next.get(field).and_then(Value::as_str).unwrap_or_default();
                say(&format!("  {:<10}   {:<24} due {}", "", text("name"), text("at")));
            }
        }
        Ok(())
    }

    async fn has_everything(&self) -> Result<()> {
        for (kind, count) in [(Kind::Jobs, 4), (Kind::JobSets, 2), (Kind::Workloads, 3)] {
            let objects = self.list(kind).await?;
            ensure!(objects.len() == count, "{kind:?}: {} of {count}", objects.len());
        }
        Ok(())
    }

    async fn enforce(&self) -> Result<()> {
        let enforce = Patch::Merge(json!({"spec": {"mode": "Enforce"}}));
        for (name, ..) in POLICIES {
            self.policies().patch(name, &PatchParams::default(), &enforce).await?;
        }
        Ok(())
    }

    async fn cleaned_up(&self) -> Result<()> {
        until_ok("what is finished is gone", PATIENCE, || async {
            let jobs: Vec<String> =
                self.list(Kind::Jobs).await?.iter().map(ResourceExt::name_any).collect();
            ensure!(jobs == KEPT, "{jobs:?}");
            for kind in [Kind::JobSets, Kind::Workloads] {
                let left = self.list(kind).await?.len();
                ensure!(left == 0, "{left} {kind:?}");
            }
            Ok(())
        })
        .await
    }

    /// The objects of a kind. Jobs of JobSets are part of these.
    async fn list(&self, kind: Kind) -> Result<Vec<DynamicObject>> {
        let all = kind.of(&self.client, &self.namespace).list(&ListParams::default()).await?.items;
        let is_part = |object: &DynamicObject| {
            object.owner_references().iter().any(|owner| owner.kind == "JobSet")
        };
        Ok(all.into_iter().filter(|object| !is_part(object)).collect())
    }

    fn policies(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("lifecycle.trainjob.dev", "v1alpha1", "RetentionPolicy");
        let resource = ApiResource::from_gvk_with_plural(&kind, "retentionpolicies");
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }
}

/// The kinds that are cleaned up.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Jobs,
    JobSets,
    Workloads,
}

impl Kind {
    fn of(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        let gvk = match self {
            Self::Jobs => GroupVersionKind::gvk("batch", "v1", "Job"),
            Self::JobSets => GroupVersionKind::gvk("jobset.x-k8s.io", "v1alpha2", "JobSet"),
            Self::Workloads => return workloads(client.clone(), namespace),
        };
        Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&gvk))
    }
}

/// A number in a status, 0 where there is none.
fn number(status: &Value, pointer: &str) -> u64 {
    status.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// When a condition became true.
fn ended_at(object: &DynamicObject, kind: &str) -> Option<Timestamp> {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array)?;
    let is_it = |condition: &&Value| condition["type"] == kind && condition["status"] == "True";
    conditions.iter().find(is_it)?.get("lastTransitionTime")?.as_str()?.parse().ok()
}
