//! `burst`: suspended TrainJobs that all need their snapshot, their JobSet and their status.
//!
//! The jobs are there when the operator starts, and when the raw client does. Its bodies are those that
//! the operator sent for a sample, with the names and UIDs of each job.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::Client;
use kube::api::{Api, PostParams};
use serde::Serialize;
use serde_json::json;
use trainjob_api::{JobSet, TrainJob};

use super::Size;
use super::calls::{Call, Calls, Micros};
use super::figures::{Spread, float};
use super::jobs::{Stored, create, side_by_side, suspended, until_suspended};
use super::progress::Progress;
use super::report::{Bar, Bound, Report, row};
use super::rig::{Rig, VERBATIM, control_plane, store};
use super::trainer::{self, Trainer};
use super::usage::{self, Usage, megabytes};
use crate::testenv::fixtures::PATIENCE;

/// As many as the bars are about.
const JOBS: usize = 2_000;
/// The calls that every job needs, by verb and resource, in their order.
const CALLS: [(&str, &str); 3] =
    [("create", "configmaps"), ("create", "jobsets"), ("patch", "trainjobs/status")];
/// The same of Kubeflow Trainer, which applies.
const CALLS_OF_TRAINER: [(&str, &str); 3] =
    [("patch", "configmaps"), ("patch", "jobsets"), ("patch", "trainjobs/status")];
/// Longer than Kubeflow Trainer takes for the statuses that are left when all JobSets are there.
const TRAINER_PATIENCE: Duration = Duration::from_mins(10);
/// The sample's name, which nothing else has in it.
const SAMPLE: &str = "sample-of-a-suspended-job";

/// What came of one round of the operator, or of Kubeflow Trainer.
struct Round {
    seconds: f64,
    /// Calls of any kind, but to watch or tell.
    calls: usize,
    /// Jobs that lack one of their calls.
    missing: usize,
    /// Status writes after a job's first, for the counts of its JobSet.
    counts: usize,
    /// Calls of any other kind.
    others: usize,
    usage: Usage,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let jobs = size.jobs.unwrap_or(JOBS);
    let (mut raws, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..size.rounds {
        raws.push(raw_round(size, jobs, progress).await?);
        ours.push(round(size, jobs, progress).await?);
    }
    let mut theirs = Vec::new();
    for _ in 0..size.trainer_rounds {
        theirs.push(trainer_round(size, jobs, progress).await?);
    }
    Ok(report(size, jobs, &raws, &ours, &theirs))
}

/// Seconds from the raw client's first call to its last.
async fn raw_round(size: Size, jobs: usize, progress: &Progress) -> Result<f64> {
    let rig = Rig::start(control_plane(size.fsync), progress).await?;
    let sample = sample(&rig).await?;
    let namespace = rig.cluster.namespace("burst").await?;
    let stored = create(&rig, &namespace, &suspended(), jobs).await?;
    rig.progress.step("the raw client writes", jobs);
    let (client, progress) = (rig.raw.clone(), rig.progress.clone());
    side_by_side(stored, move |job| {
        let (client, sample) = (client.clone(), sample.clone());
        let (namespace, progress) = (namespace.clone(), progress.clone());
        async move {
            for request in &sample.requests {
                request.send(&client, &sample.of, &namespace, &job).await?;
            }
            progress.one();
            Ok(())
        }
    })
    .await?;
    let calls = rig.noted().await?.raw;
    let (seconds, missing) = written(&calls, &CALLS, jobs);
    ensure!(missing == 0, "the raw client wrote too little for {missing} of {jobs} jobs");
    Ok(seconds)
}

async fn round(size: Size, jobs: usize, progress: &Progress) -> Result<Round> {
    let rig = Rig::start(control_plane(size.fsync), progress).await?;
    let namespace = rig.cluster.namespace("burst").await?;
    create(&rig, &namespace, &suspended(), jobs).await?;
    let operator = rig.start_operator().await?;
    rig.progress.step("JobSets that the operator wrote", jobs);
    rig.until_count::<JobSet>(&namespace, jobs).await?;
    until_suspended(&rig, &namespace, PATIENCE).await?;
    let usage = usage::of(operator.process().id())?;
    let calls = rig.noted().await?.operator;
    Ok(summed_up(&calls, &CALLS, jobs, usage))
}

/// The same of Kubeflow Trainer.
async fn trainer_round(size: Size, jobs: usize, progress: &Progress) -> Result<Round> {
    let rig = Rig::start(control_plane(size.fsync), progress).await?;
    let trainer = Trainer::install(&rig).await?;
    let namespace = rig.cluster.namespace("burst").await?;
    create(&rig, &namespace, &suspended(), jobs).await?;
    let manager = trainer.start(&rig).await?;
    rig.progress.step("JobSets that Kubeflow Trainer wrote", jobs);
    rig.until_count::<JobSet>(&namespace, jobs).await?;
    until_suspended(&rig, &namespace, TRAINER_PATIENCE).await?;
    let usage = usage::of(manager.process().id())?;
    let calls = rig.noted().await?.trainer;
    Ok(summed_up(&calls, &CALLS_OF_TRAINER, jobs, usage))
}

fn summed_up(calls: &Calls, kinds: &[(&str, &str)], jobs: usize, usage: Usage) -> Round {
    let (seconds, missing) = written(calls, kinds, jobs);
    let statuses = calls.accepted("patch", "trainjobs/status").len();
    let known = kinds.iter().map(|(verb, resource)| calls.accepted(verb, resource).len());
    Round {
        seconds,
        calls: calls.work.len(),
        missing,
        counts: statuses.saturating_sub(jobs),
        others: calls.work.len() - known.sum::<usize>(),
        usage,
    }
}

/// Seconds from the first call to the one that was the last any job needed, and how many jobs lack one.
fn written(calls: &Calls, kinds: &[(&str, &str)], jobs: usize) -> (f64, usize) {
    let (mut begin, mut end, mut missing) = (Micros(i64::MAX), Micros(0), 0);
    for (verb, resource) in kinds {
        let mut seen = HashSet::new();
        for call in calls.accepted(verb, resource) {
            begin = begin.min(call.received());
            // The later ones of a job are about counts.
            if call.object.namespace != VERBATIM && seen.insert(&call.object.name) {
                end = end.max(call.completed());
            }
        }
        missing = missing.max(jobs.abs_diff(seen.len()));
    }
    (end.since(begin) / 1e3, missing)
}

/// What the operator asked for, for one job.
#[derive(Clone)]
struct Sample {
    of: Stored,
    requests: Vec<Recorded>,
}

#[derive(Clone)]
struct Recorded {
    method: Method,
    path: String,
    body: String,
}

/// Lets the operator write for one job, and stops it.
async fn sample(rig: &Rig) -> Result<Sample> {
    rig.progress.step("the operator writes for a sample", 0);
    rig.verbatim_namespace().await?;
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), VERBATIM);
    let job = api.create(&PostParams::default(), &TrainJob::new(SAMPLE, suspended())).await?;
    let operator = rig.start_operator().await?;
    until_suspended(rig, VERBATIM, PATIENCE).await?;
    operator.sigterm()?;
    operator.wait(PATIENCE).await?;
    let calls = rig.noted().await?.operator;
    let requests = CALLS.map(|(verb, resource)| {
        let accepted = calls.accepted(verb, resource);
        let first = accepted.first().with_context(|| format!("no {verb} of {resource}"))?;
        recorded(first)
    });
    let requests = requests.into_iter().collect::<Result<_>>()?;
    Ok(Sample { of: Stored::of(&job)?, requests })
}

fn recorded(call: &Call) -> Result<Recorded> {
    let method = match call.verb.as_str() {
        "create" => Method::POST,
        _ => Method::PATCH,
    };
    ensure!(call.sent.is_object(), "the body of a {} was not noted", call.verb);
    Ok(Recorded { method, path: call.path.clone(), body: call.sent.to_string() })
}

impl Recorded {
    /// Sends the same for another job.
    async fn send(
        &self,
        client: &Client,
        sample: &Stored,
        namespace: &str,
        job: &Stored,
    ) -> Result<()> {
        let quoted = |version: &str| format!("\"resourceVersion\":\"{version}\"");
        let adapted = |text: &str| {
            text.replace(&sample.name, &job.name)
                .replace(&sample.uid, &job.uid)
                .replace(&quoted(&sample.version), &quoted(&job.version))
                .replace(VERBATIM, namespace)
        };
        let kind = match self.method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(&self.method)
            .uri(adapted(&self.path))
            .header(http::header::CONTENT_TYPE, kind)
            .body(adapted(&self.body).into_bytes())?;
        client.request_text(request).await.with_context(|| self.path.clone())?;
        Ok(())
    }
}

/// The figures of one side.
#[derive(Serialize)]
struct Side {
    #[serde(rename = "s")]
    seconds: Spread,
    cpu_ms: Spread,
    peak_mb: Spread,
    pss_mb: Spread,
    calls: Spread,
}

impl Side {
    fn of(rounds: &[Round], jobs: usize) -> Self {
        let spread = |of: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
        Self {
            seconds: spread(&|round| round.seconds),
            cpu_ms: spread(&|round| round.usage.cpu.as_secs_f64() * 1e3 / float(jobs)),
            peak_mb: spread(&|round| megabytes(round.usage.peak)),
            pss_mb: spread(&|round| megabytes(round.usage.now)),
            calls: spread(&|round| float(round.calls) / float(jobs)),
        }
    }

    fn row(&self, name: &str, jobs: usize) -> Vec<String> {
        let Self { seconds, cpu_ms, peak_mb, pss_mb, calls } = self;
        let shown = [*seconds, *cpu_ms, *peak_mb, *pss_mb, *calls].map(|it| format!("{it:.2}"));
        let [seconds, cpu, peak, memory, calls] = &shown;
        row([&name, seconds, &a_second(jobs, self.seconds.median), calls, cpu, peak, memory])
    }
}

fn a_second(jobs: usize, seconds: f64) -> String {
    format!("{:.0}", float(jobs) / seconds)
}

fn report(size: Size, jobs: usize, raws: &[f64], ours: &[Round], theirs: &[Round]) -> Report {
    let sum = |of: fn(&Round) -> usize| ours.iter().map(of).sum::<usize>();
    let (raw, us) = (Spread::of(raws.iter().copied()), Side::of(ours, jobs));
    let ratio = Spread::of(ours.iter().zip(raws).map(|(ours, raw)| raw / ours.seconds));
    let them = (!theirs.is_empty()).then(|| Side::of(theirs, jobs));
    let seconds = format!("{raw:.2}");
    let mut table = vec![
        row([&"", &"seconds", &"jobs/s", &"calls a job", &"CPU ms a job", &"most MB", &"PSS MB"]),
        row([&"raw client", &seconds, &a_second(jobs, raw.median), &CALLS.len(), &"", &"", &""]),
        us.row("operator", jobs),
    ];
    table.extend(them.as_ref().map(|side| side.row(trainer::NAME, jobs)));
    let mut notes = vec![
        format!("raw client / operator: {ratio:.2}"),
        format!("status writes for counts of JobSets, beside these: {}", sum(|it| it.counts)),
    ];
    notes.extend(them.as_ref().map(|side| {
        let times = |of: fn(&Side) -> Spread| of(side).median / of(&us).median;
        format!(
            "{} / operator: time {:.1}, CPU {:.1}, most memory {:.1}; of {} rounds",
            trainer::NAME,
            times(|it| it.seconds),
            times(|it| it.cpu_ms),
            times(|it| it.peak_mb),
            theirs.len()
        )
    }));
    Report {
        bench: "burst",
        title: format!(
            "{jobs} suspended TrainJobs until the last has snapshot, JobSet and status, with JobSet and its webhooks; {} rounds each, median (range); {}",
            size.rounds,
            store(size.fsync)
        ),
        table,
        notes,
        bars: vec![
            Bar::measured("raw client / operator", ratio.median, Bound::AtLeast(0.95)),
            Bar::measured("CPU in ms a job", us.cpu_ms.median, Bound::AtMost(1.0)),
            Bar::measured("most memory in MB", us.peak_mb.max, Bound::AtMost(25.0)),
            Bar::none("jobs that lack something", sum(|round| round.missing)),
            Bar::none("calls for anything else", sum(|round| round.others)),
        ],
        figures: json!({
            "jobs": jobs, "rounds": size.rounds, "fsync": size.fsync, "raw_s": raw,
            "ratio": ratio, "operator": us, "count_writes": sum(|round| round.counts),
            "trainer": them,
        }),
    }
}
