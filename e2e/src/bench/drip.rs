//! `drip`: a few TrainJobs due each second, among many that are not.
//!
//! The raw client works in the same seconds, in the half that the operator is idle in: five deletions
//! one after the other, each on an idle API server, and five at the same instant, as jobs fall due.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::task::JoinSet;
use trainjob_api::time::Timestamp;

use super::armed::{finished, when_filled};
use super::calls::{Calls, Micros};
use super::figures::{Spread, Times};
use super::jobs::{Stored, still_to_come};
use super::progress::Progress;
use super::report::{Bar, Bound, Report, row};
use super::rig::{Rig, control_plane, store};
use super::usage::{self, Usage, megabytes};
use super::{Size, judge, raw};

/// As many as the bars are about.
const JOBS: usize = 10_000;
const NAMESPACE: &str = "drip";
/// Jobs that fall due in each second.
const EACH: usize = 5;
/// When the raw client begins with its deletions one after the other, in milliseconds of a second.
const ALONE: i64 = 250;
/// Between two of these.
const APART: i64 = 80;
/// When it sends the others, all at once.
const TOGETHER: i64 = 750;
/// Far beyond the end of the bench.
const LATER: i64 = 100_000;

/// What came of one round.
struct Round {
    violations: Vec<String>,
    lateness: Times,
    alone: Times,
    together: Times,
    early: usize,
    missing: usize,
    others: usize,
    usage: Usage,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let jobs = size.jobs.unwrap_or(JOBS).max(3 * EACH * size.seconds);
    let mut rounds = Vec::new();
    for _ in 0..size.rounds {
        rounds.push(round(size, jobs, progress).await?);
    }
    Ok(report(size, jobs, &rounds))
}

/// The jobs that somebody deletes: the operator's, the raw client's one by one, and its others.
struct Shares([Range<usize>; 3]);

impl Shares {
    const fn of(seconds: usize) -> Self {
        let each = EACH * seconds;
        Self([0..each, each..2 * each, 2 * each..3 * each])
    }

    /// When the job of this number is due.
    fn due(&self, number: usize, begin: Timestamp) -> Timestamp {
        let [ours, ..] = &self.0;
        let second = i64::try_from(number / EACH).unwrap_or(LATER);
        begin.plus(if ours.contains(&number) { second } else { LATER })
    }
}

async fn round(size: Size, jobs: usize, progress: &Progress) -> Result<Round> {
    let rig = Rig::start_server(control_plane(size.fsync), progress).await?;
    let (begin, shares) = (when_filled(jobs), Shares::of(size.seconds));
    let dues = (0..jobs).map(|number| shares.due(number, begin)).collect();
    let stored = finished(&rig, NAMESPACE, dues).await?;
    rig.cluster.boot_others().await?;
    let watched = judge::watch(&rig).await?;
    let operator = rig.start_operator().await?;
    still_to_come(begin)?;

    let sent = delete_between(&rig, &stored, &shares, begin).await?;
    let noted = rig.noted().await?;
    let violations = judge::violations(&rig, &watched).await?;
    let [ours, alone, together] = shares.0;
    let (names, expected) = (stored.get(ours).unwrap_or_default(), EACH * size.seconds);
    let dues: HashMap<&str, Micros> = names
        .iter()
        .enumerate()
        .map(|(number, job)| (job.name.as_str(), due_of(number, begin)))
        .collect();
    let lateness = since(&noted.operator, &dues);
    let deleted = noted.operator.accepted("delete", "trainjobs");
    let is_early = |due: &Micros, received: Micros| received < *due;
    let early = deleted.iter().filter(|call| {
        dues.get(&*call.object.name).is_none_or(|due| is_early(due, call.received()))
    });
    let of = |share: Range<usize>| {
        let names = stored.get(share).unwrap_or_default().iter().map(|job| job.name.as_str());
        let begins = names.filter_map(|name| Some((name, *sent.get(name)?))).collect();
        Times::of(since(&noted.raw, &begins))
    };
    Ok(Round {
        violations,
        missing: expected.abs_diff(lateness.len()),
        lateness: Times::of(lateness),
        alone: of(alone),
        together: of(together),
        early: early.count(),
        others: noted.operator.work.len() - deleted.len(),
        usage: usage::of(operator.process().id())?,
    })
}

fn due_of(number: usize, begin: Timestamp) -> Micros {
    Micros::of(begin.plus(i64::try_from(number / EACH).unwrap_or(LATER)))
}

/// How long after the instant given for its job each deletion was done, in milliseconds.
fn since(calls: &Calls, begins: &HashMap<&str, Micros>) -> Vec<f64> {
    let deleted = calls.accepted("delete", "trainjobs");
    let late = deleted.iter().filter_map(|call| {
        let begin = begins.get(call.object.name.as_str())?;
        Some(call.completed().since(*begin))
    });
    late.collect()
}

/// Deletes the raw client's jobs between the operator's; returns when each request was sent.
async fn delete_between(
    rig: &Rig,
    stored: &[Stored],
    shares: &Shares,
    begin: Timestamp,
) -> Result<HashMap<String, Micros>> {
    let [ours, alone, together] = &shares.0;
    let seconds = ours.len() / EACH;
    rig.progress.step("seconds of TrainJobs falling due", seconds);
    let mut sent = HashMap::new();
    let share = |range: &Range<usize>| stored.get(range.clone()).context("too few jobs");
    let (alone, together) = (share(alone)?.chunks(EACH), share(together)?.chunks(EACH));
    for (second, (alone, together)) in alone.zip(together).enumerate() {
        let at = |ms: i64| Micros(due_of(second * EACH, begin).0 + ms * 1_000);
        for (job, number) in alone.iter().zip(0..) {
            tokio::time::sleep(at(ALONE + number * APART).away()).await;
            sent.insert(job.name.clone(), raw::delete(&rig.raw, NAMESPACE, job).await?);
        }
        tokio::time::sleep(at(TOGETHER).away()).await;
        let mut at_once = JoinSet::new();
        for job in together.iter().cloned() {
            let client = rig.raw.clone();
            at_once.spawn(async move {
                let sent = raw::delete(&client, NAMESPACE, &job).await?;
                anyhow::Ok((job.name, sent))
            });
        }
        while let Some(done) = at_once.join_next().await {
            sent.extend([done??]);
        }
        rig.progress.one();
    }
    // What the last jobs may be late, and then some.
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(sent)
}

fn report(size: Size, jobs: usize, rounds: &[Round]) -> Report {
    let spread = |of: fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
    let sum = |of: fn(&Round) -> usize| rounds.iter().map(of).sum::<usize>();
    let times = |of: fn(&Round) -> Times| {
        let each = |pick: fn(&Times) -> f64| Spread::of(rounds.iter().map(|it| pick(&of(it))));
        [each(|it| it.first), each(|it| it.p50), each(|it| it.p99), each(|it| it.last)]
    };
    let cells = |name: &str, of: [Spread; 4]| {
        let digits = of.map(|spread| format!("{spread:.1}"));
        [name.to_owned()].into_iter().chain(digits).collect::<Vec<_>>()
    };
    let (ours, alone) = (times(|it| it.lateness), times(|it| it.alone));
    let together = times(|it| it.together);
    let bar = |what: &str| format!("{what} / raw client, {EACH} at once");
    let ratio = spread(|round| round.lateness.p50 / round.alone.p50);
    let like = spread(|round| round.lateness.p50 / round.together.p50);
    let like_p99 = spread(|round| round.lateness.p99 / round.together.p99);
    let peak = spread(|round| megabytes(round.usage.peak));
    let json_of = |[first, p50, p99, last]: [Spread; 4]| json!({"first": first, "p50": p50, "p99": p99, "last": last});
    let violations: Vec<String> =
        rounds.iter().flat_map(|round| round.violations.iter().cloned()).collect();
    Report {
        bench: "drip",
        title: format!(
            "{jobs} finished TrainJobs, {EACH} of them due each second for {} s; {} rounds, median (range); {}",
            size.seconds,
            size.rounds,
            store(size.fsync)
        ),
        table: vec![
            row([&"ms from due, or sent, to accepted", &"first", &"p50", &"p99", &"last"]),
            cells("operator", ours),
            cells("raw client, one at a time", alone),
            cells(&format!("raw client, {EACH} at once"), together),
        ],
        notes: vec![
            format!(
                "operator / raw client: p50 {ratio:.2} one at a time, {like:.2} {EACH} at once, p99 {like_p99:.2}; memory at most {peak:.1} MB"
            ),
            judge::note(&violations),
        ],
        bars: vec![
            Bar::measured(bar("p50"), like.median, Bound::AtMost(1.25)),
            Bar::measured(bar("p99"), like_p99.median, Bound::AtMost(2.0)),
            Bar::none("deletions before they were due", sum(|round| round.early)),
            Bar::none("TrainJobs that were due and not deleted", sum(|round| round.missing)),
            Bar::none("calls for anything else", sum(|round| round.others)),
            judge::bar(&violations),
        ],
        figures: json!({
            "jobs": jobs, "rounds": size.rounds, "seconds": size.seconds, "fsync": size.fsync,
            "lateness_ms": json_of(ours), "raw_alone_ms": json_of(alone),
            "raw_together_ms": json_of(together), "ratio": ratio, "ratio_together": like,
            "ratio_together_p99": like_p99,
            "peak_mb": peak,
        }),
    }
}
