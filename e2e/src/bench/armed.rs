//! Finished TrainJobs whose TTLs are armed, as many as one likes: they are written into the store.

use std::time::SystemTime;

use anyhow::{Context, Result};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use trainjob_api::time::Timestamp;
use trainjob_api::{JobSet, TrainJob};

use super::etcd::{Etcd, Object, TRAIN_JOBS, key, put_all};
use super::figures::float;
use super::jobs::{Stored, end_at, in_seconds, with_ttl};
use super::rig::Rig;
use super::template::Template;
use crate::testenv::until::until_ok;

/// The sample's name and its TTL, which nothing else has in it.
const SAMPLE: &str = "sample-of-a-finished-job";
const TTL: i32 = 1_987_654_321;
/// How long before now the jobs have finished, in seconds.
const AGO: i64 = 3_600;
/// Objects a second that every machine seen so far can write, and serve after that.
const RATE: f64 = 1_000.0;
/// How long all but that takes, in seconds.
const START: f64 = 30.0;
/// How long an API server may take until it serves what was written.
const SERVED_WITHIN: std::time::Duration = std::time::Duration::from_mins(5);

/// What differs from job to job.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Name,
    Uid,
    Ttl,
}

/// When `count` jobs that are written from now on are there, in a control plane that is complete.
pub(super) fn when_filled(count: usize) -> Timestamp {
    in_seconds(START + float(count) / RATE)
}

/// The UID of the object of this number.
pub(super) fn uid(number: usize) -> String {
    format!("{number:08x}-0000-4000-8000-{number:012x}")
}

/// Makes `count` finished jobs that are all due in the same second, which is still to come.
pub(super) async fn due_together(
    rig: &Rig,
    namespace: &str,
    count: usize,
) -> Result<(Vec<Stored>, Timestamp)> {
    let due = when_filled(count);
    Ok((finished(rig, namespace, vec![due; count]).await?, due))
}

/// Makes finished jobs in a new namespace, such that their TTLs have passed when it says. Nothing but the API server
/// may run.
pub(super) async fn finished(
    rig: &Rig,
    namespace: &str,
    dues: Vec<Timestamp>,
) -> Result<Vec<Stored>> {
    rig.bare_namespace(namespace).await?;
    let ended = Timestamp::from(SystemTime::now()).plus(-AGO);
    let template = sample(rig, namespace, ended).await?;
    rig.cluster.stop_apiserver();
    let (count, namespace) = (dues.len(), namespace.to_owned());
    let versions = put_all(rig, "storing finished TrainJobs", count, move |number| {
        let ttl = dues.get(number).map_or(0, |due| due.since(ended));
        let text = template.fill(|slot| match slot {
            Slot::Name => name(number),
            Slot::Uid => uid(number),
            Slot::Ttl => ttl.to_string(),
        });
        Object { key: key(TRAIN_JOBS, &namespace, &name(number)), text }
    })
    .await?;
    start_apiserver(rig).await?;
    let stored = versions.into_iter().enumerate();
    let stored =
        stored.map(|(number, version)| Stored { name: name(number), uid: uid(number), version });
    Ok(stored.collect())
}

/// Starts the API server again and waits until it serves what was stored.
pub(super) async fn start_apiserver(rig: &Rig) -> Result<()> {
    rig.progress.step("the API server starts with what was stored", 0);
    rig.cluster.start_apiserver().await?;
    let jobs: Api<TrainJob> = Api::all(rig.admin.clone());
    let job_sets: Api<JobSet> = Api::all(rig.admin.clone());
    let one = ListParams::default().limit(1);
    until_ok("TrainJobs and JobSets are served", SERVED_WITHIN, || async {
        jobs.list_metadata(&one).await?;
        job_sets.list_metadata(&one).await?;
        Ok(())
    })
    .await
}

fn name(number: usize) -> String {
    format!("job-{number:06}")
}

/// A job that finished then, as it is stored. It is gone when this returns.
async fn sample(rig: &Rig, namespace: &str, ended: Timestamp) -> Result<Template<Slot>> {
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), namespace);
    let mut job = TrainJob::new(SAMPLE, with_ttl());
    job.spec.ttl_seconds_after_finished = Some(TTL);
    let job = api.create(&PostParams::default(), &job).await?;
    end_at(&api, SAMPLE, ended).await?;
    let text = Etcd::of(rig)?.get(&key(TRAIN_JOBS, namespace, SAMPLE)).await?;
    api.delete(SAMPLE, &DeleteParams::default()).await?;
    let (uid, ttl) = (job.uid().context("no UID")?, TTL.to_string());
    Ok(Template::new(&text, &[(SAMPLE, Slot::Name), (&uid, Slot::Uid), (&ttl, Slot::Ttl)]))
}
