//! `storm`: finished TrainJobs that are all due in the same second, while a new one is submitted.

use anyhow::Result;
use kube::api::{Api, PostParams};
use serde_json::json;
use trainjob_api::{JobSet, TrainJob};

use super::armed::due_together;
use super::calls::{Call, Micros};
use super::figures::{Spread, Times, float};
use super::jobs::{on_torch, side_by_side, still_to_come};
use super::peer::{self, Limits, Peer};
use super::progress::Progress;
use super::report::{Bar, Bound, Report, row};
use super::rig::{Rig, control_plane, store};
use super::usage::{self, Usage, megabytes};
use super::{Size, raw};

/// As many as the bars are about.
const JOBS: usize = 10_000;
/// From so many on, more is expected.
const MANY: usize = 100_000;
const NAMESPACE: &str = "storm";

/// What came of one round of the operator.
struct Ours {
    rate: f64,
    lateness: Times,
    early: usize,
    lost: usize,
    deleted: usize,
    /// Calls that are neither deletions nor events.
    others: usize,
    events: usize,
    /// New jobs without a JobSet.
    held_up: usize,
    /// Processor time of each deletion, in milliseconds, until the last one is accepted. Of 100,000 jobs the garbage
    /// collector removes the last one minutes later.
    cpu: f64,
    usage: Usage,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let jobs = size.jobs.unwrap_or(JOBS);
    let (mut raws, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..size.rounds {
        raws.push(raw_round(size, jobs, progress).await?);
        ours.push(round(size, jobs, progress).await?);
    }
    let mut peers = Vec::new();
    for limits in Limits::ALL {
        if size.peer_jobs > 0 {
            peers.push(peer::run(size, limits, progress).await?);
        }
    }
    Ok(report(size, jobs, &raws, &ours, &peers))
}

/// Deletions a second of the raw client.
async fn raw_round(size: Size, jobs: usize, progress: &Progress) -> Result<f64> {
    let rig = Rig::start_server(control_plane(size.fsync), progress).await?;
    let (stored, due) = due_together(&rig, NAMESPACE, jobs).await?;
    rig.cluster.boot_others().await?;
    // The garbage collector is as busy as beside the operator.
    rig.progress.step("what the raw client deletes falls due", 0);
    still_to_come(due)?;
    tokio::time::sleep(Micros::of(due).away()).await;
    rig.progress.step("the raw client deletes TrainJobs", jobs);
    let (client, progress) = (rig.raw.clone(), rig.progress.clone());
    side_by_side(stored, move |job| {
        let (client, progress) = (client.clone(), progress.clone());
        async move {
            raw::delete(&client, NAMESPACE, &job).await?;
            progress.one();
            Ok(())
        }
    })
    .await?;
    let calls = rig.noted().await?.raw;
    let deleted = calls.accepted("delete", "trainjobs");
    let begin = deleted.iter().map(|call| call.received()).min().unwrap_or(Micros(0));
    Ok(rate(&deleted, begin))
}

async fn round(size: Size, jobs: usize, progress: &Progress) -> Result<Ours> {
    let rig = Rig::start_server(control_plane(size.fsync), progress).await?;
    let (_, due) = due_together(&rig, NAMESPACE, jobs).await?;
    rig.cluster.boot_others().await?;
    let operator = rig.start_operator().await?;
    let before = usage::of(operator.process().id())?;
    still_to_come(due)?;
    tokio::time::sleep(Micros::of(due).away()).await;
    let live = rig.cluster.namespace("live").await?;
    let jobs_there: Api<TrainJob> = Api::namespaced(rig.admin.clone(), &live);
    jobs_there.create(&PostParams::default(), &TrainJob::new("live", on_torch())).await?;
    rig.progress.step("the operator deletes TrainJobs", 0);
    rig.until_all_deleted(&operator, jobs).await?;
    let usage = usage::of(operator.process().id())?;
    let lost = rig.not_deleted(NAMESPACE).await?;
    let held_up = 1 - rig.until_count::<JobSet>(&live, 1).await?;
    let cpu = usage.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e3 / float(jobs);
    let mut calls = rig.noted().await?.operator;
    calls.work.retain(|call| call.object.namespace == NAMESPACE);
    let (deleted, due) = (calls.accepted("delete", "trainjobs"), Micros::of(due));
    Ok(Ours {
        rate: rate(&deleted, due),
        lateness: Times::of(deleted.iter().map(|call| call.completed().since(due))),
        early: deleted.iter().filter(|call| call.received() < due).count(),
        lost,
        deleted: deleted.len(),
        others: calls.work.len() - deleted.len(),
        events: calls.events.len(),
        held_up,
        cpu,
        usage,
    })
}

/// Deletions a second, from `begin` to the last one.
fn rate(deleted: &[&Call], begin: Micros) -> f64 {
    let end = deleted.iter().map(|call| call.completed()).max().unwrap_or(begin);
    float(deleted.len()) / end.since(begin) * 1e3
}

/// The share of the raw client's rate that is expected with so many: the more, the less their end counts, when places stay empty.
const fn least_ratio(jobs: usize) -> f64 {
    if jobs < MANY { 0.85 } else { 0.92 }
}

/// The milliseconds of CPU of a deletion that are expected with so many: a start and its first second count, too.
const fn most_cpu(jobs: usize) -> f64 {
    if jobs < MANY { 0.5 } else { 0.25 }
}

fn report(size: Size, jobs: usize, raws: &[f64], ours: &[Ours], peers: &[Peer]) -> Report {
    let spread = |of: fn(&Ours) -> f64| Spread::of(ours.iter().map(of));
    let sum = |of: fn(&Ours) -> usize| ours.iter().map(of).sum::<usize>();
    let raw = Spread::of(raws.iter().copied());
    let rate = spread(|round| round.rate);
    let ratio = Spread::of(ours.iter().zip(raws).map(|(ours, raw)| ours.rate / raw));
    let peak = spread(|round| megabytes(round.usage.peak));
    let now = spread(|round| megabytes(round.usage.now));
    let (first, p50) = (spread(|it| it.lateness.first), spread(|it| it.lateness.p50));
    let (p99, last) = (spread(|it| it.lateness.p99), spread(|it| it.lateness.last));
    let cpu = spread(|round| round.cpu);

    let mut table = vec![
        row([&"", &"deletions/s", &"first ms", &"p50 ms", &"p99 ms", &"last ms"]),
        row([&"raw client", &raw, &"", &"", &"", &""]),
        row([&"operator", &rate, &first, &p50, &p99, &last]),
    ];
    table.extend(peers.iter().map(Peer::row));
    let expected = ours.len() * jobs;
    let mut bars = vec![
        Bar::measured("operator / raw client", ratio.median, Bound::AtLeast(least_ratio(jobs))),
        Bar::measured("CPU in ms a deletion", cpu.median, Bound::AtMost(most_cpu(jobs))),
        Bar::none("deletions before they were due", sum(|round| round.early)),
        Bar::none("TrainJobs left", sum(|round| round.lost)),
        Bar::none(
            "TrainJobs without just one deletion",
            expected.abs_diff(sum(|round| round.deleted)),
        ),
        Bar::none("new jobs without a JobSet", sum(|round| round.held_up)),
        Bar::none("calls for anything else", sum(|round| round.others)),
    ];
    if jobs <= JOBS {
        bars.push(Bar::measured("most memory in MB", peak.max, Bound::AtMost(40.0)));
    }
    bars.extend(peers.iter().filter_map(|peer| peer.bar(rate.median)));
    Report {
        bench: "storm",
        title: format!(
            "{jobs} finished TrainJobs due in the same second; {} rounds each, median (range); {}",
            size.rounds,
            store(size.fsync)
        ),
        table,
        notes: vec![
            format!(
                "operator / raw client: {ratio:.2}; CPU {cpu:.2} ms a deletion, until the last is accepted"
            ),
            format!("memory of the operator: at most {peak:.1} MB, at the end {now:.1} MB (PSS)"),
            format!("events, apart: {} of {expected} deletions", sum(|round| round.events)),
        ],
        bars,
        figures: json!({
            "jobs": jobs, "rounds": size.rounds, "fsync": size.fsync, "raw_rate": raw, "rate": rate,
            "ratio": ratio, "lateness_ms": {"first": first, "p50": p50, "p99": p99, "last": last},
            "peak_mb": peak, "pss_mb": now, "cpu_ms": cpu, "events": sum(|round| round.events),
            "peers": peers.iter().map(Peer::json).collect::<Vec<_>>(),
        }),
    }
}
