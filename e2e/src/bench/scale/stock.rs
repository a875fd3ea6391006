//! The jobs that are there: as many finished ones as unfinished ones, half of these suspended and half running, in 200
//! namespaces. What is stored of each is what the operator and JobSet have stored for a sample.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use trainjob_api::time::Timestamp;
use trainjob_api::v1alpha1::train_job::TrainJobSpec;
use trainjob_api::{JobSet, TrainJob};

use super::super::armed::{start_apiserver, uid};
use super::super::etcd::{CONFIG_MAPS, Etcd, JOB_SETS, Object, TRAIN_JOBS, key, put_all};
use super::super::jobs::{end_at, on_torch, suspended, with_ttl};
use super::super::rig::Rig;
use super::super::template::Template;
use crate::testenv::cluster::Options;
use crate::testenv::component::Component;
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::until::until_ok;

/// Namespaces with jobs.
pub(super) const NAMESPACES: usize = 200;
/// Finished jobs that are overdue from the beginning: one in each namespace, so that the first page of a list has one.
pub(super) const OVERDUE: usize = NAMESPACES;
/// Running jobs without a deadline, which get one later.
pub(super) const FREE: usize = 100;
/// Below this, there would be fewer jobs of some kind than are needed.
pub(super) const FEWEST: usize = 1_000;

const SAMPLES: &str = "samples-of-jobs";
/// A TTL and a deadline that nothing else has in it.
const SECONDS: i32 = 1_987_654_321;
/// How long ago the finished jobs have finished, in seconds.
const AGO: i64 = 3_600;
/// A TTL or deadline that has not passed until the bench has ended, in seconds.
const FAR: i64 = 30 * 86_400;
/// The UIDs of kinds begin so far from each other.
const APART: usize = 0x1000_0000;

/// What the jobs of a kind have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Complete, with a TTL.
    Finished,
    /// Suspended, with a suspended JobSet.
    Suspended,
    /// Running, with a deadline.
    Running,
    /// Running, without a deadline.
    Free,
}

impl Kind {
    const UNFINISHED: [Self; 3] = [Self::Suspended, Self::Running, Self::Free];

    /// The sample's name.
    const fn sample(self) -> &'static str {
        match self {
            Self::Finished => "sample-of-a-finished-job",
            Self::Suspended => "sample-of-a-suspended-job",
            Self::Running => "sample-of-a-running-job",
            Self::Free => "sample-of-a-free-job",
        }
    }

    fn spec(self) -> TrainJobSpec {
        match self {
            Self::Finished => {
                TrainJobSpec { ttl_seconds_after_finished: Some(SECONDS), ..with_ttl() }
            }
            Self::Suspended => suspended(),
            Self::Running => {
                TrainJobSpec { active_deadline_seconds: Some(SECONDS.into()), ..on_torch() }
            }
            Self::Free => on_torch(),
        }
    }

    /// Finished ones come first in a list.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Finished => "done",
            Self::Suspended => "held",
            Self::Running => "runs",
            Self::Free => "free",
        }
    }
}

/// One job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) kind: Kind,
    pub(super) number: usize,
}

impl Job {
    pub(super) fn namespace(&self) -> String {
        format!("space-{:03}", self.number % NAMESPACES)
    }

    pub(super) fn name(&self) -> String {
        format!("{}-{:06}", self.kind.prefix(), self.number)
    }

    /// Its TTL or its deadline, in seconds.
    pub(super) fn seconds(&self) -> i64 {
        let number = i64::try_from(self.number).unwrap_or_default();
        match self.kind {
            Kind::Finished if self.number < OVERDUE => AGO / 2,
            _ => FAR + number,
        }
    }
}

/// The unfinished job of this number of so many.
pub(super) fn unfinished(number: usize, jobs: usize) -> Job {
    let kind = match number {
        _ if number < jobs / 2 => Kind::Suspended,
        _ if number < jobs - FREE => Kind::Running,
        _ => Kind::Free,
    };
    Job { kind, number }
}

/// The running job without a deadline of this number, of so many unfinished ones.
pub(super) const fn free(number: usize, jobs: usize) -> Job {
    Job { kind: Kind::Free, number: jobs - FREE + number }
}

/// What differs from job to job.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Namespace,
    Name,
    /// The UID of the TrainJob, of its JobSet, and of its ConfigMap.
    Uid(usize),
    Seconds,
}

/// What is stored of a job, by kind of object.
#[derive(Debug, Clone)]
struct Sample {
    job: Template<Slot>,
    job_set: Option<Template<Slot>>,
    snapshot: Option<Template<Slot>>,
}

impl Sample {
    fn object(&self, what: usize, job: &Job) -> Object {
        let (namespace, name) = (job.namespace(), job.name());
        let nothing = Object { key: String::new(), text: String::new() };
        let (template, key) = match what {
            0 => (Some(&self.job), key(TRAIN_JOBS, &namespace, &name)),
            1 => (self.job_set.as_ref(), key(JOB_SETS, &namespace, &name)),
            _ => {
                let name = format!("{name}-runtime-snapshot");
                (self.snapshot.as_ref(), key(CONFIG_MAPS, &namespace, &name))
            }
        };
        let text = |template: &Template<Slot>| {
            template.fill(|slot| match slot {
                Slot::Namespace => namespace.clone(),
                Slot::Name => name.clone(),
                Slot::Uid(kind) => uid_of(job, kind),
                Slot::Seconds => job.seconds().to_string(),
            })
        };
        template.map_or(nothing, |template| Object { key, text: text(template) })
    }
}

fn uid_of(job: &Job, kind: usize) -> String {
    let finished = usize::from(job.kind == Kind::Finished);
    uid(job.number + APART * (kind + 3 * finished))
}

/// A control plane of an API server with JobSet, which plays no part once there are samples.
pub(super) fn control_plane(fsync: bool) -> Options {
    Options { nodes: None, controllers: false, fsync, ..Options::default() }
}

/// Fills a control plane in which nothing but the API server and JobSet runs.
pub(super) async fn fill(rig: &Rig, jobs: usize) -> Result<()> {
    ensure!(jobs >= FEWEST, "the bench needs at least {FEWEST} jobs");
    let samples = samples(rig).await?;
    rig.progress.step("making namespaces", NAMESPACES);
    for number in 0..NAMESPACES {
        rig.bare_namespace(&Job { kind: Kind::Finished, number }.namespace()).await?;
        rig.progress.one();
    }
    rig.cluster.stop_apiserver();
    let step = "storing TrainJobs, JobSets and snapshots";
    put_all(rig, step, 4 * jobs, move |number| {
        let (what, number) = (number / jobs, number % jobs);
        let job = match what {
            0 => Job { kind: Kind::Finished, number },
            _ => unfinished(number, jobs),
        };
        let [finished, suspended, running, free] = &samples;
        let sample = match job.kind {
            Kind::Finished => finished,
            Kind::Suspended => suspended,
            Kind::Running => running,
            Kind::Free => free,
        };
        sample.object(what.saturating_sub(1), &job)
    })
    .await?;
    start_apiserver(rig).await
}

/// Lets the operator and JobSet store what belongs to a job of each kind. JobSet has no part in what follows.
async fn samples(rig: &Rig) -> Result<[Sample; 4]> {
    rig.progress.step("the operator writes for samples", 0);
    rig.bare_namespace(SAMPLES).await?;
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), SAMPLES);
    let operator = rig.start_operator().await?;
    for kind in Kind::UNFINISHED {
        api.create(&PostParams::default(), &TrainJob::new(kind.sample(), kind.spec())).await?;
    }
    try_join_all(Kind::UNFINISHED.map(|kind| job_set_says_something(rig, kind))).await?;
    without_job_set(rig).await?;
    for kind in [Kind::Running, Kind::Free] {
        set_ready(&rig.admin, SAMPLES, kind.sample(), 1).await?;
    }
    until_at_rest(rig).await?;
    operator.sigterm()?;
    operator.wait(PATIENCE).await?;
    let kind = Kind::Finished;
    api.create(&PostParams::default(), &TrainJob::new(kind.sample(), kind.spec())).await?;
    let ended = Timestamp::from(SystemTime::now()).plus(-AGO);
    end_at(&api, kind.sample(), ended).await?;
    let [finished, suspended, running, free] =
        [Kind::Finished, Kind::Suspended, Kind::Running, Kind::Free].map(|kind| sample(rig, kind));
    Ok([finished.await?, suspended.await?, running.await?, free.await?])
}

/// Stops JobSet and removes its webhooks, without which nothing could be stored.
pub(super) async fn without_job_set(rig: &Rig) -> Result<()> {
    rig.cluster.stop(Component::JobSet);
    let (how, all) = (DeleteParams::default(), ListParams::default());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(rig.admin.clone());
    mutating.delete_collection(&how, &all).await?;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(rig.admin.clone());
    validating.delete_collection(&how, &all).await?;
    Ok(())
}

/// Waits until JobSet has written the status of a sample's JobSet.
async fn job_set_says_something(rig: &Rig, kind: Kind) -> Result<()> {
    let job_sets: Api<JobSet> = Api::namespaced(rig.admin.clone(), SAMPLES);
    until_ok(format!("{} has a JobSet with a status", kind.sample()), PATIENCE, || async {
        let job_set = json!(job_sets.get(kind.sample()).await?);
        let counts = job_set.pointer("/status/replicatedJobsStatus").and_then(Value::as_array);
        ensure!(counts.is_some_and(|counts| !counts.is_empty()), "it has none: {job_set}");
        Ok(())
    })
    .await
}

/// Writes into the status of a JobSet how many of its Jobs are ready.
pub(super) async fn set_ready(
    client: &Client,
    namespace: &str,
    name: &str,
    ready: u32,
) -> Result<()> {
    let counts = json!({"name": "node", "ready": ready, "active": 1, "failed": 0, "succeeded": 0, "suspended": 0});
    let status = Patch::Merge(json!({"status": {"replicatedJobsStatus": [counts]}}));
    let job_sets: Api<JobSet> = Api::namespaced(client.clone(), namespace);
    job_sets.patch_status(name, &PatchParams::default(), &status).await?;
    Ok(())
}

/// Waits until nothing about the samples changes for some seconds.
async fn until_at_rest(rig: &Rig) -> Result<()> {
    const LOOK: Duration = Duration::from_secs(3);
    let etcd = &Etcd::of(rig)?;
    let stored = || async {
        let keys = Kind::UNFINISHED
            .into_iter()
            .flat_map(|kind| [TRAIN_JOBS, JOB_SETS].map(|what| key(what, SAMPLES, kind.sample())));
        try_join_all(keys.map(|key| async move { etcd.get(&key).await })).await
    };
    let mut before = stored().await?;
    for _ in 0..20 {
        tokio::time::sleep(LOOK).await;
        let now = stored().await?;
        if now == before {
            return Ok(());
        }
        before = now;
    }
    anyhow::bail!("the samples change again and again")
}

/// What is stored of a sample.
async fn sample(rig: &Rig, kind: Kind) -> Result<Sample> {
    let (name, etcd, seconds) = (kind.sample(), Etcd::of(rig)?, SECONDS.to_string());
    let job = etcd.get(&key(TRAIN_JOBS, SAMPLES, name)).await?;
    let uid = uid_in(&job)?;
    let mut slots = vec![
        (SAMPLES, Slot::Namespace),
        (name, Slot::Name),
        (uid.as_str(), Slot::Uid(0)),
        (seconds.as_str(), Slot::Seconds),
    ];
    if kind == Kind::Finished {
        let job = Template::new(&job, &slots);
        return Ok(Sample { job, job_set: None, snapshot: None });
    }
    let job_set = etcd.get(&key(JOB_SETS, SAMPLES, name)).await?;
    let snapshot = snapshot(rig, name).await?;
    let uids = [uid_in(&job_set)?, uid_in(&snapshot)?];
    slots.extend(uids.iter().zip(1..).map(|(uid, kind)| (uid.as_str(), Slot::Uid(kind))));
    Ok(Sample {
        job: Template::new(&job, &slots),
        job_set: Some(Template::new(&job_set, &slots)),
        snapshot: Some(Template::new(&snapshot, &slots)),
    })
}

/// The snapshot of a sample's runtime. It is stored in a form of the API server's own, but JSON is read, too.
async fn snapshot(rig: &Rig, name: &str) -> Result<String> {
    let config_maps: Api<ConfigMap> = Api::namespaced(rig.admin.clone(), SAMPLES);
    let mut snapshot = config_maps.get(&format!("{name}-runtime-snapshot")).await?;
    snapshot.metadata.resource_version = None;
    snapshot.managed_fields_mut().clear();
    Ok(json!(snapshot).to_string())
}

fn uid_in(text: &str) -> Result<String> {
    let object: Value = serde_json::from_str(text).context("a sample is no JSON")?;
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    uid.map(str::to_owned).context("a sample without a UID")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_unfinished_jobs_are_suspended_and_the_last_have_no_deadline() {
        let kinds: Vec<Kind> = (0..2_000).map(|number| unfinished(number, 2_000).kind).collect();
        let count = |kind| kinds.iter().filter(|it| **it == kind).count();
        assert_eq!(count(Kind::Suspended), 1_000);
        assert_eq!(count(Kind::Running), 1_000 - FREE);
        assert_eq!(free(0, 2_000), unfinished(2_000 - FREE, 2_000));
        assert_eq!(free(FREE - 1, 2_000), unfinished(1_999, 2_000));
    }

    #[test]
    fn one_job_in_each_namespace_is_overdue() {
        let finished = (0..FEWEST).map(|number| Job { kind: Kind::Finished, number });
        let overdue = finished.filter(|job| job.seconds() < AGO).map(|job| job.namespace());
        let namespaces: std::collections::BTreeSet<_> = overdue.collect();
        assert_eq!(namespaces.len(), NAMESPACES);
    }

    #[test]
    fn no_two_objects_have_the_same_uid() {
        let of = |kind, number| (0..3).map(move |what| uid_of(&Job { kind, number }, what));
        let uids =
            (0..50).flat_map(|number| of(Kind::Finished, number).chain(of(Kind::Free, number)));
        assert_eq!(uids.collect::<std::collections::HashSet<_>>().len(), 300);
    }
}
