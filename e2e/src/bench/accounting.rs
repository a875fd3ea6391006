//! `accounting`: what the accounting program costs with many Pods, and how fast it counts them (AH1, and `docs/accounting.md`, 5).
//!
//! One control plane, in three steps. Open: the program learns of Pods that run, half of them of one TrainJob, the others in
//! TrainJobs of eight. Churn: jobs of eight Pods end, so many a minute, and the Pods of nine in ten are deleted. Completions:
//! while no program runs all open Pods succeed; a raw client releases some others; then a program starts and counts and
//! releases them all.

pub(super) mod restarts;
mod rig;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use tokio::task::JoinSet;
use trainjob_api::TrainJob;
use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecord;

use self::rig::{GANG, Rig, There, WITHIN, delete, release, running, succeed};
use super::Size;
use super::calls::{Call, Calls, Micros};
use super::figures::{Times, float};
use super::jobs::{in_places, on_torch};
use super::progress::Progress;
use super::report::{Bar, Bound, Report, row};
use super::rig::store;
use super::usage::{self, Usage, megabytes};
use crate::testenv::until::until_ok;

/// As many Pods as the bars are about.
const PODS: usize = 100_000;
/// Requests that each side has under way.
const PLACES: usize = 64;
/// Jobs that end in a minute of churn: 5,000 Pods.
const JOBS_A_MINUTE: u32 = 625;
/// One of so many is not deleted.
const NOT_DELETED: usize = 10;
/// How long a Pod may wait that nobody has deleted, in milliseconds: `batchPeriod` and two seconds (AH1).
const UNDELETED_WAITS: f64 = 7_000.0;

/// When each Pod of the churn was deleted, or ended and was left alone.
#[derive(Default)]
struct Churn {
    deleted: HashMap<String, Micros>,
    ended: HashMap<String, Micros>,
}

/// How long Pods of the churn waited for their release.
struct Waits {
    deleted: Times,
    ended: Times,
    /// Pods that were not released.
    stayed: usize,
}

/// What came of the step with open Pods.
struct Open {
    usage: Usage,
    /// Calls about Pods that have not ended.
    calls: usize,
}

/// What came of the step with completions.
struct Completions {
    raw: f64,
    ours: f64,
    /// Seconds from the first release to the last.
    seconds: f64,
    /// Writes for each Pod of the large TrainJob.
    writes: f64,
    /// Pods that were not released by just one request.
    not_once: usize,
    /// By how many Pods the records differ from those there were.
    miscounted: usize,
    peak: u64,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let pods = size.jobs.unwrap_or(PODS).max(GANG * 4);
    let rig = Rig::start(size.fsync, progress).await?;
    let (large, small) = (rig.namespace("large").await?, rig.namespace("small").await?);
    let gangs = pods / 2 / GANG;
    let mut all = rig.jobs("storing one large TrainJob", &large, (1, pods / 2)).await?;
    all.extend(rig.jobs("storing small TrainJobs", &small, (gangs, GANG)).await?);
    let for_raw = rig.namespace("raw").await?;
    let sample = rig.jobs("storing for the raw client", &for_raw, (1, pods / 10)).await?;
    let known = all.len() + sample.len();

    let program = rig.launch().await?;
    rig.open(&program, known).await?;
    let usage = usage::of(program.process().id())?;
    let about_pods = |calls: &Calls| calls.accepted("patch", "pods").len();
    let open = Open { usage, calls: about_pods(&rig.noted().await?.operator) };
    let live = rig.namespace("live").await?;
    let churn = churn(&rig, &live, size.seconds).await?;
    rig.open(&program, known).await?;
    let calls = rig.noted().await?.operator;
    let [deleted, ended] = [&churn.deleted, &churn.ended].map(|all| since(&calls, &live, all));
    drop(program);

    let stayed = churn.deleted.len() + churn.ended.len() - deleted.len() - ended.len();
    let waits = Waits { deleted: Times::of(deleted), ended: Times::of(ended), stayed };
    let completed = completions(&rig, &large, all, sample).await?;
    Ok(report(size, known, &open, &waits, &completed))
}

/// Jobs of eight Pods end and are deleted, for so many seconds.
async fn churn(rig: &Rig, namespace: &str, seconds: usize) -> Result<Churn> {
    rig.progress.step("jobs end and are deleted", 0);
    let jobs = seconds * usize::try_from(JOBS_A_MINUTE)? / 60;
    let mut beat = tokio::time::interval(Duration::from_mins(1) / JOBS_A_MINUTE);
    let mut lives = JoinSet::new();
    for number in 0..jobs {
        beat.tick().await;
        let (client, namespace) = (rig.admin.clone(), namespace.to_owned());
        lives.spawn(async move {
            let api: Api<TrainJob> = Api::namespaced(client.clone(), &namespace);
            let job = TrainJob::new(&format!("live-{number:06}"), on_torch());
            let job = api.create(&PostParams::default(), &job).await?;
            let mut pods = Vec::new();
            for number in 0..GANG {
                pods.push(running(&client, &job, number).await?);
            }
            let mut churn = Churn::default();
            for there in pods {
                let ended = succeed(&client, &there).await?;
                if number % NOT_DELETED == 0 {
                    churn.ended.insert(there.name, ended);
                } else {
                    let deleted = delete(&client, &there).await?;
                    churn.deleted.insert(there.name, deleted);
                }
            }
            anyhow::Ok(churn)
        });
    }
    let mut all = Churn::default();
    while let Some(life) = lives.join_next().await {
        let Churn { deleted, ended } = life??;
        all.deleted.extend(deleted);
        all.ended.extend(ended);
    }
    Ok(all)
}

/// How long after these instants each of these Pods was released, in milliseconds.
fn since(calls: &Calls, namespace: &str, pods: &HashMap<String, Micros>) -> Vec<f64> {
    let mut released = HashMap::new();
    for call in calls.accepted("patch", "pods") {
        if call.object.namespace == namespace {
            released.entry(&call.object.name).or_insert_with(|| call.completed());
        }
    }
    let waited = pods.iter().filter_map(|(pod, at)| Some(released.get(pod)?.since(*at)));
    waited.collect()
}

async fn completions(
    rig: &Rig,
    large: &str,
    all: Vec<There>,
    sample: Vec<There>,
) -> Result<Completions> {
    rig.end(all.clone()).await?;
    rig.progress.step("the raw client releases", sample.len());
    let (client, progress) = (rig.raw.clone(), rig.progress.clone());
    in_places(PLACES, sample, move |there| {
        let (client, progress) = (client.clone(), progress.clone());
        async move {
            release(&client, &there).await?;
            progress.one();
            Ok(())
        }
    })
    .await?;
    let program = rig.launch().await?;
    rig.open(&program, 0).await?;
    let peak = usage::of(program.process().id())?.peak;
    let ended: HashSet<_> = all.iter().map(|there| (&there.namespace, &there.name)).collect();
    // What is counted is not open any more, and released after that.
    rig.progress.step("the program releases the last", 0);
    let noted = until_ok("all are released", WITHIN, || async {
        let noted = rig.noted().await?;
        let released = releases(&noted.operator, &ended).len();
        ensure!(released >= all.len(), "{released} of {} are", all.len());
        Ok(noted)
    })
    .await?;
    let ours = releases(&noted.operator, &ended);
    let of_large = all.iter().filter(|there| there.namespace == large).count();
    let (ours_a_second, seconds) = rate(&ours).context("the program released nothing")?;
    let raw = noted.raw.accepted("patch", "pods");
    Ok(Completions {
        raw: rate(&raw).context("the raw client released nothing")?.0,
        ours: ours_a_second,
        seconds,
        writes: float(writes(&noted.operator, large)) / float(of_large),
        not_once: all.len().abs_diff(ours.len()),
        miscounted: miscounted(rig, large, of_large).await?,
        peak,
    })
}

/// Accepted releases of these Pods, which are told by namespace and name.
fn releases<'a>(calls: &'a Calls, pods: &HashSet<(&String, &String)>) -> Vec<&'a Call> {
    let mut releases = calls.accepted("patch", "pods");
    releases.retain(|call| pods.contains(&(&call.object.namespace, &call.object.name)));
    releases
}

/// Accepted writes in a namespace.
fn writes(calls: &Calls, namespace: &str) -> usize {
    let kinds =
        [("create", "trainjobrecords"), ("update", "trainjobrecords/status"), ("patch", "pods")];
    let accepted = kinds.iter().flat_map(|(verb, resource)| calls.accepted(verb, resource));
    accepted.filter(|call| call.object.namespace == namespace).count()
}

/// By how much the record of the only TrainJob of a namespace differs from so many Pods that succeeded.
async fn miscounted(rig: &Rig, namespace: &str, pods: usize) -> Result<usize> {
    let records: Api<TrainJobRecord> = Api::namespaced(rig.admin.clone(), namespace);
    let mut records = records.list(&ListParams::default()).await?.items;
    let record = records.pop().context("no record")?;
    let name = record.name_any();
    let totals = record.status.with_context(|| format!("{name} has no status"))?.totals;
    Ok(pods.abs_diff(usize::try_from(totals.pods.succeeded)?))
}

/// Requests a second, and how long they took, from the first to the last.
fn rate(calls: &[&Call]) -> Option<(f64, f64)> {
    let begin = calls.iter().map(|call| call.received()).min()?;
    let seconds = calls.last()?.completed().since(begin) / 1e3;
    Some((float(calls.len()) / seconds, seconds))
}

fn report(size: Size, pods: usize, open: &Open, waits: &Waits, completed: &Completions) -> Report {
    let ratio = completed.ours / completed.raw;
    let (steady, peak) =
        (megabytes(open.usage.now), megabytes(open.usage.peak.max(completed.peak)));
    let line = |what: &str, times: &Times| {
        let times = [times.p50, times.p99, times.last].map(|ms| format!("{ms:.0}"));
        [what.to_owned()].into_iter().chain(times).collect()
    };
    let at_most =
        |what: &str, value: f64, most: f64| Bar::measured(what, value, Bound::AtMost(most));
    // So many Pods are done in five minutes, or at this part of the raw client's rate.
    let by_time = if completed.seconds <= 300.0 { 1.0 } else { ratio };
    Report {
        bench: "accounting",
        title: format!("{pods} Pods; {}", store(size.fsync)),
        table: vec![
            row([&"5,000 Pods a minute in jobs of 8; ms", &"p50", &"p99", &"last"]),
            line("from deletion to release", &waits.deleted),
            line("from the end to release, not deleted", &waits.ended),
        ],
        notes: vec![
            format!("memory: {steady:.1} MB (PSS) with all Pods open, at most {peak:.1} MB"),
            format!(
                "program / raw client: {ratio:.2} ({:.0} and {:.0} releases a second); {:.0} s for all; {:.3} writes for each Pod of the large TrainJob",
                completed.ours, completed.raw, completed.seconds, completed.writes
            ),
        ],
        bars: vec![
            at_most("memory with all Pods open in MB", steady, 150.0),
            at_most("p99 ms from deletion to release", waits.deleted.p99, 2_000.0),
            at_most(
                "p99 ms from the end to release, not deleted",
                waits.ended.p99,
                UNDELETED_WAITS,
            ),
            Bar::measured(
                "program / raw client, or 1 within 5 minutes",
                by_time,
                Bound::AtLeast(0.8),
            ),
            at_most("writes a Pod of the large TrainJob", completed.writes, 1.05),
            Bar::none("requests about Pods that run", open.calls),
            Bar::none("Pods that ended and stayed", waits.stayed),
            Bar::none("Pods not released by just one request", completed.not_once),
            Bar::none("Pods miscounted in the large TrainJob", completed.miscounted),
        ],
        figures: json!({
            "pods": pods, "fsync": size.fsync, "pss_mb": steady, "peak_mb": peak,
            "deleted_ms": waits.deleted, "ended_ms": waits.ended,
            "raw_rate": completed.raw, "rate": completed.ours, "ratio": ratio, "seconds": completed.seconds, "writes_per_pod": completed.writes,
        }),
    }
}
