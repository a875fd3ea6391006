//! `tenant`: what one bad neighbour costs the others.
//!
//! In each case jobs of one namespace, or service accounts of tenants, misbehave while a neighbour gets new jobs, deadlines
//! and TTLs come. When each was served is what somebody sees who watches the neighbour's namespace. The raw client writes
//! and reads JobSets there meanwhile: through the proxy where the operator is behind one, and always in the operator's
//! priority level, which is the chart's.

pub(super) mod case;
mod flood;
mod flow_control;
mod hang;
mod load;
mod neighbour;
mod sightings;
mod warnings;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::Size;
use super::figures::Times;
use super::progress::Progress;
use super::report::{Bar, Bound, Report, row};
use super::rig::{Rig, control_plane, store};
use case::Case;
use load::{Beside, Round};
use neighbour::{Neighbour, Sample, Served};

/// As many as the bars are about.
const JOBS: usize = 1_000;

/// One of the kinds of times.
type Pick = fn(&Served) -> &Vec<Sample>;

/// The rounds of a case.
struct Row {
    case: Case,
    rounds: Vec<Round>,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let jobs = size.jobs.unwrap_or(JOBS);
    let cases = match size.case {
        Some(super::Case::Tenant(case)) => vec![case],
        Some(super::Case::Scale(_)) => bail!("there is no such case of tenant"),
        None => Case::value_variants().to_vec(),
    };
    let mut rows = Vec::new();
    for case in cases {
        let mut rounds = Vec::new();
        for _ in 0..size.rounds {
            rounds.push(round(case, size, jobs, progress).await?);
        }
        rows.push(Row { case, rounds });
    }
    Ok(report(size, jobs, &rows))
}

async fn round(case: Case, size: Size, jobs: usize, progress: &Progress) -> Result<Round> {
    let rig = Rig::start(control_plane(size.fsync), progress).await?;
    progress.step(format!("{} beside others", case.name()), 0);
    flow_control::install(&rig).await?;
    let neighbour = Neighbour::prepare(&rig, size.seconds).await?;
    let beside = Beside { rig: &rig, neighbour: &neighbour, jobs, seconds: size.seconds };
    match (case.hang(), case) {
        (Some(hang), _) => hang::beside(&beside, hang).await,
        (None, Case::Warnings) => warnings::beside(&beside).await,
        (None, _) => flood::beside(&beside).await,
    }
}

impl Row {
    fn samples(&self, of: Pick) -> impl Iterator<Item = Sample> {
        self.rounds.iter().flat_map(move |round| of(&round.served).iter().copied())
    }

    /// The times of all rounds.
    fn times(&self, of: Pick) -> Times {
        Times::of(self.samples(of).map(|sample| sample.ms))
    }

    /// When the slowest began, in seconds.
    fn slowest(&self, of: Pick) -> f64 {
        let slowest = self.samples(of).max_by(|one, other| one.ms.total_cmp(&other.ms));
        slowest.map_or(f64::NAN, |sample| sample.at)
    }

    fn count(&self, of: fn(&Round) -> usize) -> usize {
        self.rounds.iter().map(of).sum()
    }

    fn cells(&self) -> Vec<String> {
        let of = |of: Pick| {
            let Times { p50, p99, last, .. } = self.times(of);
            format!("{p50:.0} / {p99:.0} / {last:.0}")
        };
        row([
            &self.case.name(),
            &of(|it| &it.new),
            &of(|it| &it.failed),
            &of(|it| &it.told),
            &of(|it| &it.deleted),
            &of(|it| &it.gone),
            &of(|it| &it.post),
            &of(|it| &it.get),
        ])
    }

    fn note(&self) -> String {
        let loads: Vec<&str> = self.rounds.iter().map(|round| round.load.as_str()).collect();
        let kinds: [Pick; 4] = [|it| &it.new, |it| &it.failed, |it| &it.deleted, |it| &it.post];
        let slowest = kinds.map(|of| format!("{:.1}", self.slowest(of))).join(", ");
        format!(
            "{}: {}; the slowest new job, deadline, TTL and raw POST were those of second {slowest}",
            self.case.name(),
            loads.join("; "),
        )
    }

    fn bars(&self) -> Vec<Bar> {
        let (name, bars) = (self.case.name(), self.case.bars());
        let late = |what: &str, value: f64, most: f64| {
            Bar::measured(format!("{name}: {what}, s"), value / 1e3, Bound::AtMost(most / 1e3))
        };
        let none = |what: &str, of: fn(&Round) -> usize| {
            Bar::none(format!("{name}: {what}"), self.count(of))
        };
        vec![
            late("new job to JobSet, p99", self.times(|it| &it.new).p99, bars.new_p99),
            late("deadline late", self.times(|it| &it.failed).last, bars.deadline),
            late("TTL late", self.times(|it| &it.deleted).last, bars.ttl),
            none("what the neighbour waited for in vain", |round| round.served.missing),
            none("what came before it was due", |round| round.served.early),
            none("what the load lacked", |round| round.lacking),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "case": self.case.name(),
            "new_ms": self.times(|it| &it.new), "deadline_ms": self.times(|it| &it.failed),
            "warning_ms": self.times(|it| &it.told), "deleted_ms": self.times(|it| &it.deleted), "gone_ms": self.times(|it| &it.gone),
            "raw_post_ms": self.times(|it| &it.post), "raw_get_ms": self.times(|it| &it.get),
            "served": self.count(|round| round.served.new.len()),
        })
    }
}

fn report(size: Size, jobs: usize, rows: &[Row]) -> Report {
    let heading = row([
        &"p50 / p99 / max ms",
        &"new job to JobSet",
        &"deadline late",
        &"its warning",
        &"TTL: deleted",
        &"gone",
        &"raw POST",
        &"raw GET",
    ]);
    Report {
        bench: "tenant",
        title: format!(
            "a neighbour beside {jobs} TrainJobs of somebody else for {} s; {} rounds, all together; {}",
            size.seconds,
            size.rounds,
            store(size.fsync)
        ),
        table: [heading].into_iter().chain(rows.iter().map(Row::cells)).collect(),
        notes: rows.iter().map(Row::note).collect(),
        bars: rows.iter().flat_map(Row::bars).collect(),
        figures: json!({
            "jobs": jobs, "rounds": size.rounds, "seconds": size.seconds, "fsync": size.fsync,
            "cases": rows.iter().map(Row::json).collect::<Vec<_>>(),
        }),
    }
}
