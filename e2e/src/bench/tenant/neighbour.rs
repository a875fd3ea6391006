//! The neighbour that is measured: new jobs, deadlines and TTLs, evenly spread, and the raw client between them.

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use trainjob_api::time::Timestamp;
use trainjob_api::v1alpha1::train_job::TrainJobSpec;
use trainjob_api::{JobSet, TrainJob};

use super::super::calls::Micros;
use super::super::figures::float;
use super::super::jobs::{create, end, on_torch, until_suspended, with_ttl};
use super::super::rig::Rig;
use super::sightings::{Sight, Sightings};
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::fixtures::status::created_at;
use crate::testenv::kinds::job_sets;
use crate::testenv::until::until;

/// Jobs of each kind in a second.
const EACH: usize = 2;
/// How long one turn begins after the one before, in microseconds.
const APART: i64 = 500_000;
/// How many seconds deadlines and TTLs are given; the first may be nearly over when it begins.
const AHEAD: i64 = 2;

/// A namespace with jobs that nothing is wrong with.
#[derive(Debug)]
pub(super) struct Neighbour {
    namespace: String,
    turns: usize,
    seen: Sightings,
}

/// How long something took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// When its turn began, in seconds from the beginning.
    pub(super) at: f64,
    pub(super) ms: f64,
}

/// What came of the neighbour's jobs.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// From the creation of a job until its JobSet was seen.
    pub(super) new: Vec<Sample>,
    /// From a deadline, or from its creation's answer if that came later, until the failure was seen.
    pub(super) failed: Vec<Sample>,
    /// Until the warning of it was seen.
    pub(super) told: Vec<Sample>,
    /// From the end of a TTL, likewise, until the deletion was seen.
    pub(super) deleted: Vec<Sample>,
    /// Until the job was gone, with all that belonged to it.
    pub(super) gone: Vec<Sample>,
    /// What the raw client waited for a JobSet that it created.
    pub(super) post: Vec<Sample>,
    /// And for reading it.
    pub(super) get: Vec<Sample>,
    /// What was never seen.
    pub(super) missing: usize,
    /// What was seen before it was due.
    pub(super) early: usize,
}

/// A job, and when what is waited for was due, or could be known.
struct Due {
    name: String,
    at: Micros,
    /// The earliest instant at which it may be seen.
    from: Micros,
}

/// What is waited for after one turn.
struct Turn {
    number: usize,
    new: Due,
    failed: Due,
    gone: Due,
    post: f64,
    get: f64,
}

impl Neighbour {
    /// Makes the namespace and the jobs whose TTLs will come.
    pub(super) async fn prepare(rig: &Rig, seconds: usize) -> Result<Self> {
        let namespace = rig.cluster.namespace("neighbour").await?;
        let turns = EACH * seconds;
        let spec = TrainJobSpec { suspend: Some(true), ..with_ttl() };
        create(rig, &namespace, &spec, turns).await?;
        let seen = Sightings::begin(&rig.admin, &namespace).await?;
        Ok(Self { namespace, turns, seen })
    }

    /// Waits until the operator has done all that there is to do for the jobs so far.
    pub(super) async fn settled(&self, rig: &Rig) -> Result<()> {
        settled(rig, &self.namespace, self.turns).await
    }

    /// Creates jobs, lets deadlines and TTLs come, and sees what becomes of them.
    pub(super) async fn lives(&self, rig: &Rig, raw: &Client) -> Result<Served> {
        rig.progress.step("the neighbour is measured", 0);
        let (begin, mut under_way) = (Micros::now(), JoinSet::new());
        for (number, due) in (0..self.turns).zip((0..).map(|turn| begin.0 + turn * APART)) {
            tokio::time::sleep(Micros(due).away()).await;
            let jobs = Api::namespaced(rig.admin.clone(), &self.namespace);
            let sets = Api::namespaced_with(raw.clone(), &self.namespace, &job_sets());
            under_way.spawn(turn(jobs, sets, number));
        }
        let mut turns = Vec::new();
        while let Some(done) = under_way.join_next().await {
            turns.push(done??);
        }
        // What does not come is counted.
        let _ = until("the neighbour is served", PATIENCE, || async {
            (self.served(&turns).missing == 0).then_some(())
        })
        .await;
        Ok(self.served(&turns))
    }

    fn served(&self, turns: &[Turn]) -> Served {
        let mut served = Served::default();
        for turn in turns {
            let at = float(turn.number) / float(EACH);
            let sample = |ms| Sample { at, ms };
            let mut late = |sight: Sight, due: &Due| {
                let seen = self.seen.of(sight, &due.name);
                served.missing += usize::from(seen.is_none());
                served.early += usize::from(seen.is_some_and(|seen| seen < due.from));
                seen.map(|seen| sample(seen.since(due.at)))
            };
            let (new, failed) = (late(Sight::JobSet, &turn.new), late(Sight::Failed, &turn.failed));
            let (told, deleted) =
                (late(Sight::Told, &turn.failed), late(Sight::Deleted, &turn.gone));
            let gone = late(Sight::Gone, &turn.gone);
            served.new.extend(new);
            served.failed.extend(failed);
            served.told.extend(told);
            served.deleted.extend(deleted);
            served.gone.extend(gone);
            served.post.push(sample(turn.post));
            served.get.push(sample(turn.get));
        }
        served
    }
}

/// Waits until each of so many suspended jobs has its JobSet, for as long as there come to be more, and says so.
pub(super) async fn settled(rig: &Rig, namespace: &str, count: usize) -> Result<()> {
    rig.progress.step("JobSets that the operator made", count);
    rig.until_count::<JobSet>(namespace, count).await?;
    until_suspended(rig, namespace, PATIENCE).await
}

/// A new job, one with a deadline, the end of one that has a TTL, and then what the raw client does.
async fn turn(jobs: Api<TrainJob>, sets: Api<DynamicObject>, number: usize) -> Result<Turn> {
    let how = PostParams::default();
    let (name, at) = (format!("new-{number:06}"), Micros::now());
    jobs.create(&how, &TrainJob::new(&name, on_torch())).await?;
    let new = Due { name, at, from: at };

    let name = format!("due-{number:06}");
    let spec = TrainJobSpec { active_deadline_seconds: Some(AHEAD), ..on_torch() };
    let job = jobs.create(&how, &TrainJob::new(&name, spec)).await?;
    let failed = Due::of(name, created_at(&job).plus(AHEAD));

    let (name, due) =
        (format!("job-{number:06}"), Timestamp::from(std::time::SystemTime::now()).plus(AHEAD));
    end(&jobs, &name, due).await?;
    let gone = Due::of(name, due);

    let name = format!("raw-{number:06}");
    let sent = Micros::now();
    sets.create(&how, &job_set(&name)?).await.context("the raw client is refused")?;
    let post = Micros::now().since(sent);
    let sent = Micros::now();
    sets.get(&name).await.context("the raw client is refused")?;
    Ok(Turn { number, new, failed, gone, post, get: Micros::now().since(sent) })
}

impl Due {
    /// What is due then, and was stored just now.
    fn of(name: String, due: Timestamp) -> Self {
        let from = Micros::of(due);
        Self { name, at: from.max(Micros::now()), from }
    }
}

/// A JobSet that does not run.
pub(super) fn job_set(name: &str) -> Result<DynamicObject> {
    let pod: Value = json!({
        "restartPolicy": "Never",
        "containers": [{"name": "node", "image": "example.com/train:1"}],
    });
    Ok(serde_json::from_value(json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"suspend": true, "replicatedJobs": [
            {"name": "node", "template": {"spec": {"template": {"spec": pod}}}},
        ]},
    }))?)
}
