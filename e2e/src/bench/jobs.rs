//! Makes TrainJobs in bulk, as they are after a life of which nothing is left but their end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::task::JoinSet;
use trainjob_api::time::Timestamp;
use trainjob_api::v1alpha1::train_job::{RuntimeRef, TrainJobSpec};
use trainjob_api::{TrainJob, conditions};

use super::calls::Micros;
use super::rig::Rig;
use crate::testenv::fixtures::status::{conditions_of, created_at};
use crate::testenv::until::until_ok;

/// Requests that are under way at a time: as many as the operator's workers by default.
pub(super) const IN_FLIGHT: usize = 64;

/// The TTL of all jobs; when they are due is set by when they finished.
const TTL: i32 = 3_600;

/// Seconds that are left for the operator's start.
const START: i64 = 8;

/// A TrainJob as it is stored.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) version: String,
}

impl Stored {
    pub(super) fn of(job: &TrainJob) -> Result<Self> {
        Ok(Self {
            name: job.name_any(),
            uid: job.uid().context("no UID")?,
            version: job.resource_version().context("no version")?,
        })
    }
}

/// The spec of a job that has a TTL.
pub(super) fn with_ttl() -> TrainJobSpec {
    TrainJobSpec { ttl_seconds_after_finished: Some(TTL), ..on_torch() }
}

/// The spec of a job that is made and does not run.
pub(super) fn suspended() -> TrainJobSpec {
    TrainJobSpec { suspend: Some(true), ..on_torch() }
}

/// The spec of a job on the runtime of `examples/`.
pub(super) fn on_torch() -> TrainJobSpec {
    let runtime_ref = RuntimeRef { name: "torch-distributed".to_owned(), ..RuntimeRef::default() };
    TrainJobSpec { runtime_ref, ..TrainJobSpec::default() }
}

/// Creates `count` jobs.
pub(super) async fn create(
    rig: &Rig,
    namespace: &str,
    spec: &TrainJobSpec,
    count: usize,
) -> Result<Vec<Stored>> {
    rig.progress.step("creating TrainJobs", count);
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), namespace);
    let jobs = (0..count).map(|number| TrainJob::new(&format!("job-{number:06}"), spec.clone()));
    let progress = rig.progress.clone();
    let mut stored = side_by_side(jobs.collect(), move |job| {
        let (api, progress) = (api.clone(), progress.clone());
        async move {
            let created = api.create(&PostParams::default(), &job).await?;
            progress.one();
            Stored::of(&created)
        }
    })
    .await?;
    stored.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(stored)
}

/// Makes a job of [`with_ttl`] Complete, such that its TTL has passed when it says.
pub(super) async fn end(api: &Api<TrainJob>, name: &str, due: Timestamp) -> Result<TrainJob> {
    end_at(api, name, due.plus(-i64::from(TTL))).await
}

/// Makes a job Complete since `at`, also one that is already.
pub(super) async fn end_at(api: &Api<TrainJob>, name: &str, at: Timestamp) -> Result<TrainJob> {
    let end = json!({"status": {"conditions": [{
        "type": conditions::COMPLETE,
        "status": "True",
        "reason": "AllJobsCompleted",
        "message": "jobset completed successfully",
        "lastTransitionTime": Time::from(at),
    }]}});
    Ok(api.patch_status(name, &PatchParams::default(), &Patch::Merge(end)).await?)
}

/// Gives all jobs of a namespace their deadlines, which come in the same second.
pub(super) async fn arm(rig: &Rig, namespace: &str, due: Timestamp) -> Result<()> {
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), namespace);
    let there = api.list(&ListParams::default()).await?.items;
    rig.progress.step("deadlines are set", there.len());
    let progress = rig.progress.clone();
    side_by_side(there, move |job| {
        let (api, progress) = (api.clone(), progress.clone());
        async move {
            arm_one(&api, &job, due).await?;
            progress.one();
            Ok(())
        }
    })
    .await?;
    Ok(())
}

/// Gives a job a deadline that comes when it says.
pub(super) async fn arm_one(api: &Api<TrainJob>, job: &TrainJob, due: Timestamp) -> Result<()> {
    let deadline = due.since(created_at(job));
    let patch = Patch::Merge(json!({"spec": {"activeDeadlineSeconds": deadline}}));
    api.patch(&job.name_any(), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until the operator says of every job of a namespace that it is suspended.
pub(super) async fn until_suspended(rig: &Rig, namespace: &str, patience: Duration) -> Result<()> {
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), namespace);
    until_ok("every status is written", patience, || async {
        let jobs = api.list(&ListParams::default()).await?.items;
        let is_open = |job: &&TrainJob| {
            conditions::find_true(conditions_of(job), conditions::SUSPENDED).is_none()
        };
        let open = jobs.iter().filter(is_open).count();
        ensure!(open == 0, "{open} are not");
        Ok(())
    })
    .await
}

/// The second that begins after `seconds` from now and the time that an operator takes to start.
#[expect(clippy::cast_possible_truncation, reason = "a bench takes no 68 years")]
pub(super) fn in_seconds(seconds: f64) -> Timestamp {
    Timestamp::from(std::time::SystemTime::now()).plus(seconds.ceil() as i64 + START)
}

/// Fails when `due` has come: then the machine was too slow for what was planned.
pub(super) fn still_to_come(due: Timestamp) -> Result<()> {
    let late = Micros::now().since(Micros::of(due));
    ensure!(late < 0.0, "not ready until {late} ms after jobs were due: the machine is too busy");
    Ok(())
}

/// Does something with each item, [`IN_FLIGHT`] at a time. The order of the results is that of their
/// ends.
pub(super) async fn side_by_side<T, R, F>(
    items: Vec<T>,
    act: impl Fn(T) -> F + Clone + Send + 'static,
) -> Result<Vec<R>>
where
    T: Send + 'static,
    R: Send + 'static,
    F: Future<Output = Result<R>> + Send,
{
    in_places(IN_FLIGHT, items, act).await
}

/// The same, so many at a time.
pub(super) async fn in_places<T, R, F>(
    places: usize,
    items: Vec<T>,
    act: impl Fn(T) -> F + Clone + Send + 'static,
) -> Result<Vec<R>>
where
    T: Send + 'static,
    R: Send + 'static,
    F: Future<Output = Result<R>> + Send,
{
    let items = Arc::new(Mutex::new(items.into_iter()));
    let mut workers = JoinSet::new();
    for _ in 0..places {
        let (items, act) = (Arc::clone(&items), act.clone());
        workers.spawn(async move {
            let mut results = Vec::new();
            loop {
                let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(item) = next else { return anyhow::Ok(results) };
                results.push(act(item).await?);
            }
        });
    }
    let mut all = Vec::new();
    while let Some(done) = workers.join_next().await {
        all.extend(done??);
    }
    Ok(all)
}
