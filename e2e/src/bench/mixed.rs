//! `mixed`: new work and deadlines while a backlog of expired TrainJobs is deleted.
//!
//! Twice in each round there is a new job and one whose deadline comes: when the operator starts, and
//! when a tenth of the backlog is gone. What counts is how much of the backlog is deleted before each
//! has what it waits for, from the moment on at which the operator could know of it.

use anyhow::{Context, Result, ensure};
use kube::api::{Api, PostParams};
use serde_json::json;
use trainjob_api::time::Timestamp;
use trainjob_api::v1alpha1::train_job::TrainJobSpec;
use trainjob_api::{JobSet, TrainJob, conditions};

use super::armed::finished;
use super::calls::{Call, Calls, Micros};
use super::figures::{Spread, float};
use super::jobs::on_torch;
use super::progress::Progress;
use super::report::{Bar, Bound, Report, row};
use super::rig::{Rig, control_plane, store};
use super::usage::{self, megabytes};
use super::{Size, judge};
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::fixtures::status::conditions_of;
use crate::testenv::until::until_ok;

/// As many as the bars are about.
const JOBS: usize = 10_000;
/// From so many on, more is expected.
const MANY: usize = 100_000;
/// Seconds that the deadlines allow.
const DEADLINE: i64 = 1;
const BACKLOG: &str = "backlog";
const LIVE: &str = "live";
/// The jobs at the operator's start and later, each with a deadline and without.
const NAMES: [[&str; 2]; 2] = [["new-first", "due-first"], ["new-later", "due-later"]];

/// What came of one round.
struct Round {
    violations: Vec<String>,
    /// Shares of the backlog that were deleted meanwhile, in per cent: before the JobSets of the new
    /// jobs, before the deadlines were stored.
    new: f64,
    due: f64,
    /// How long it took, in milliseconds.
    new_ms: f64,
    due_ms: f64,
    missing: usize,
    lost: usize,
    peak: f64,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let jobs = size.jobs.unwrap_or(JOBS);
    let mut rounds = Vec::new();
    for _ in 0..size.rounds {
        rounds.push(round(size, jobs, progress).await?);
    }
    Ok(report(size, jobs, &rounds))
}

async fn round(size: Size, jobs: usize, progress: &Progress) -> Result<Round> {
    let rig = Rig::start_server(control_plane(size.fsync), progress).await?;
    let due = Timestamp::from(std::time::SystemTime::now());
    finished(&rig, BACKLOG, vec![due; jobs]).await?;
    rig.cluster.boot_others().await?;
    let live = rig.cluster.namespace(LIVE).await?;

    let [first, later] = NAMES;
    let first = submit(&rig, &live, first).await?;
    let watched = judge::watch(&rig).await?;
    let operator = rig.launch_operator().await?;
    rig.progress.step("the operator starts", 0);
    rig.until_deleted(&operator, float(jobs) / 10.0).await?;
    let later = submit(&rig, &live, later).await?;
    rig.progress.step("the operator deletes TrainJobs; there are", jobs);
    let lost = rig.until_count::<TrainJob>(BACKLOG, 0).await?;
    served(&rig, &live).await?;
    let peak = megabytes(usage::of(operator.process().id())?.peak);
    let calls = rig.noted().await?.operator;
    let violations = judge::violations(&rig, &watched).await?;
    let deleted = calls.accepted("delete", "trainjobs");
    let begin = deleted.first().context("nothing was deleted")?.completed();
    let found = [first, later].map(|pair| found(&calls, &deleted, begin, pair));
    let worst = |of: fn(&Found) -> Option<f64>| {
        found.iter().flatten().filter_map(of).fold(f64::NAN, f64::max)
    };
    let share = |count: f64| count * 100.0 / float(jobs);
    Ok(Round {
        violations,
        new: share(worst(|it| (!it.deadline).then_some(it.meanwhile))),
        due: share(worst(|it| it.deadline.then_some(it.meanwhile))),
        new_ms: worst(|it| (!it.deadline).then_some(it.ms)),
        due_ms: worst(|it| it.deadline.then_some(it.ms)),
        missing: 4 - found.iter().flatten().count(),
        lost,
        peak,
    })
}

/// A job, and when the operator could know what it had to do for it.
struct Submitted {
    name: &'static str,
    deadline: bool,
    at: Micros,
}

/// What a job got.
struct Found {
    deadline: bool,
    /// How many jobs of the backlog were deleted meanwhile.
    meanwhile: f64,
    ms: f64,
}

/// Creates a job without a deadline and one with.
async fn submit(rig: &Rig, namespace: &str, names: [&'static str; 2]) -> Result<[Submitted; 2]> {
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), namespace);
    let [new, due] = names;
    let spec = TrainJobSpec { active_deadline_seconds: Some(DEADLINE), ..on_torch() };
    let job = api.create(&PostParams::default(), &TrainJob::new(due, spec)).await?;
    let created = job.metadata.creation_timestamp.as_ref().map(Timestamp::from);
    let at = Micros::of(created.context("no time of creation")?.plus(DEADLINE));
    let due = Submitted { name: due, deadline: true, at };
    let at = Micros::now();
    api.create(&PostParams::default(), &TrainJob::new(new, on_torch())).await?;
    Ok([Submitted { name: new, deadline: false, at }, due])
}

/// Waits until every job that was submitted has what it waits for. A small backlog is gone before the last deadline comes.
async fn served(rig: &Rig, namespace: &str) -> Result<()> {
    let jobs: Api<TrainJob> = Api::namespaced(rig.admin.clone(), namespace);
    let job_sets: Api<JobSet> = Api::namespaced(rig.admin.clone(), namespace);
    until_ok("every new job has its JobSet, and every deadline is stored", PATIENCE, || async {
        for [new, due] in NAMES {
            job_sets.get(new).await?;
            let job = jobs.get(due).await?;
            let failed = conditions::find_true(conditions_of(&job), conditions::FAILED);
            ensure!(failed.is_some(), "{due} has not failed");
        }
        Ok(())
    })
    .await
}

/// What the two jobs got, and what was deleted between `begin`, or their own moment if that was later,
/// and then.
fn found(
    calls: &Calls,
    deleted: &[&Call],
    begin: Micros,
    [new, due]: [Submitted; 2],
) -> Vec<Found> {
    let outcome = |job: &Submitted, verb: &str, resource: &str| {
        let about = |call: &&&Call| call.object.name == job.name && call.completed() >= job.at;
        let accepted = calls.accepted(verb, resource);
        let done = accepted.iter().find(about)?.completed();
        let since = job.at.max(begin);
        let between = |call: &&&Call| (since..done).contains(&call.completed());
        let meanwhile = float(deleted.iter().filter(between).count());
        let ms = done.since(job.at);
        Some(Found { deadline: job.deadline, meanwhile, ms })
    };
    let new = outcome(&new, "create", "jobsets");
    new.into_iter().chain(outcome(&due, "patch", "trainjobs/status")).collect()
}

/// The percentage of a backlog of so many that may be deleted meanwhile: the larger it is, the less of it a moment takes.
const fn most(jobs: usize) -> f64 {
    if jobs < MANY { 5.0 } else { 0.5 }
}

fn report(size: Size, jobs: usize, rounds: &[Round]) -> Report {
    let spread = |of: fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
    let sum = |of: fn(&Round) -> usize| rounds.iter().map(of).sum::<usize>();
    let (new, due) = (spread(|it| it.new), spread(|it| it.due));
    let (new_ms, due_ms) = (spread(|it| it.new_ms), spread(|it| it.due_ms));
    let peak = spread(|it| it.peak);
    let cell = |spread: Spread| format!("{spread:.2}");
    let violations: Vec<String> =
        rounds.iter().flat_map(|round| round.violations.iter().cloned()).collect();
    Report {
        bench: "mixed",
        title: format!(
            "{jobs} TrainJobs have expired when the operator starts; {} rounds, median (range); {}",
            size.rounds,
            store(size.fsync)
        ),
        table: vec![
            row([&"the slower of two", &"% of the backlog", &"ms"]),
            row([&"new job until its JobSet", &cell(new), &new_ms]),
            row([&"deadline until it is stored", &cell(due), &due_ms]),
        ],
        notes: vec![
            format!(
                "ms of the first pair count from before the operator's start; memory at most {peak:.1} MB"
            ),
            judge::note(&violations),
        ],
        bars: vec![
            Bar::measured("% of the backlog before a JobSet", new.max, Bound::AtMost(most(jobs))),
            Bar::measured("% of the backlog before a deadline", due.max, Bound::AtMost(most(jobs))),
            Bar::none("jobs without what they waited for", sum(|round| round.missing)),
            Bar::none("TrainJobs left", sum(|round| round.lost)),
            judge::bar(&violations),
        ],
        figures: json!({
            "jobs": jobs, "rounds": size.rounds, "fsync": size.fsync, "new_percent": new,
            "due_percent": due, "new_ms": new_ms, "due_ms": due_ms, "peak_mb": peak,
        }),
    }
}
