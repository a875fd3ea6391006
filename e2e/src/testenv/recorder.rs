//! Somebody who writes down what happens in a cluster: every version of every object that rules look at.
//!
//! Each kind is listed once and then followed from the version of that list on, so that no version is
//! missed or seen twice; an interrupted watch goes on where it was. Should the API server have
//! forgotten the versions in between, the record has a gap, and [`Recorder::caught_up`] fails.

mod accounting;
mod charge;
mod follow;
mod read;
mod record;
mod retention;
mod targets;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use invariants::Change;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{Api, Client};
use tokio::task::JoinSet;

use crate::testenv::kinds::{job_sets, train_jobs};
use follow::Followed;
use read::{JobSet, TrainJob};
use record::Record;

pub use accounting::AccountingRecorder;
pub use retention::{RetentionRecorder, kind};

/// How long a watch may be behind on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Watches TrainJobs, JobSets, ConfigMaps, Secrets and Pods of all namespaces until it is dropped.
pub struct Recorder {
    client: Client,
    record: Arc<Record>,
    _tasks: JoinSet<()>,
}

impl Recorder {
    /// Begins to record; what is there already is the first that is noted.
    pub async fn start(client: Client) -> Result<Self> {
        let record = Arc::new(Record::default());
        let mut tasks = JoinSet::new();
        let (jobs, job_sets, config_maps, secrets, pods) = kinds(&client, None);
        tasks.spawn(jobs.begin(&record).await?);
        tasks.spawn(job_sets.begin(&record).await?);
        tasks.spawn(config_maps.begin(&record).await?);
        tasks.spawn(secrets.begin(&record).await?);
        tasks.spawn(pods.begin(&record).await?);
        Ok(Self { client, record, _tasks: tasks })
    }

    /// Every change seen so far, of one namespace or of all, in the order in which they were stored.
    #[must_use]
    pub fn changes(&self, namespace: Option<&str>) -> Vec<Change> {
        self.record.changes(namespace)
    }

    /// Waits until the record has everything that was stored when this was called: each object that
    /// exists, in its version or a later one, and the end of each recorded object that does not.
    pub async fn caught_up(&self) -> Result<()> {
        self.has_all(None).await
    }

    /// Like [`Recorder::caught_up`], for the objects of one namespace.
    pub async fn caught_up_in(&self, namespace: &str) -> Result<()> {
        self.has_all(Some(namespace)).await
    }

    async fn has_all(&self, namespace: Option<&str>) -> Result<()> {
        let (jobs, job_sets, config_maps, secrets, pods) = kinds(&self.client, namespace);
        let mut stored = jobs.stored().await?;
        stored.merge(job_sets.stored().await?);
        stored.merge(config_maps.stored().await?);
        stored.merge(secrets.stored().await?);
        stored.merge(pods.stored().await?);
        let caught_up = self.record.wait_for(&stored, namespace);
        tokio::time::timeout(PATIENCE, caught_up).await.context("the record stays behind")?
    }
}

type Kinds =
    (Followed<TrainJob>, Followed<JobSet>, Followed<ConfigMap>, Followed<Secret>, Followed<Pod>);

/// All kinds that are recorded, in one namespace or in all.
fn kinds(client: &Client, namespace: Option<&str>) -> Kinds {
    let (jobs, job_sets) = (train_jobs(), job_sets());
    match namespace {
        Some(namespace) => (
            Followed::of(Api::namespaced_with(client.clone(), namespace, &jobs)),
            Followed::of(Api::namespaced_with(client.clone(), namespace, &job_sets)),
            Followed::of(Api::namespaced(client.clone(), namespace)),
            Followed::of(Api::namespaced(client.clone(), namespace)),
            Followed::of(Api::namespaced(client.clone(), namespace)),
        ),
        None => (
            Followed::of(Api::all_with(client.clone(), &jobs)),
            Followed::of(Api::all_with(client.clone(), &job_sets)),
            Followed::of(Api::all(client.clone())),
            Followed::of(Api::all(client.clone())),
            Followed::of(Api::all(client.clone())),
        ),
    }
}
