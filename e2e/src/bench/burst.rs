//! `burst`: suspended TrainJobs that all need their snapshot, their JobSet and their status.
//!
//! The jobs are there when the operator starts, and when the raw client does. Its bodies are those that
//! the operator sent for a sample, with the names and UIDs of each job.

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use trainjob_api::trainjob::TrainJobSpec;
use trainjob_api::{JobSet, TrainJob, conditions};

use crate::fixtures::PATIENCE;
use crate::fixtures::status::conditions_of;
use crate::until::until_ok;

use super::Size;
use super::calls::{Call, Calls, Micros};
use super::figures::{Spread, float};
use super::jobs::{Stored, create, on_torch, side_by_side};
use super::progress::Progress;
use super::report::{Bar, Bound, Report, row};
use super::rig::{Rig, VERBATIM, control_plane, store};
use super::usage::{self, Usage, megabytes};

/// As many as the bars are about.
const JOBS: usize = 2_000;
/// The calls that every job needs, by verb and resource, in their order.
const CALLS: [(&str, &str); 3] =
    [("create", "configmaps"), ("create", "jobsets"), ("patch", "trainjobs/status")];
/// The sample's name, which nothing else has in it.
const SAMPLE: &str = "sample-of-a-suspended-job";

/// What came of one round of the operator.
struct Ours {
    seconds: f64,
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
    Ok(report(size, jobs, &raws, &ours))
}

fn suspended() -> TrainJobSpec {
    TrainJobSpec { suspend: Some(true), ..on_torch() }
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
    let (seconds, missing) = written(&calls, jobs);
    ensure!(missing == 0, "the raw client wrote too little for {missing} of {jobs} jobs");
    Ok(seconds)
}

async fn round(size: Size, jobs: usize, progress: &Progress) -> Result<Ours> {
    let rig = Rig::start(control_plane(size.fsync), progress).await?;
    let namespace = rig.cluster.namespace("burst").await?;
    create(&rig, &namespace, &suspended(), jobs).await?;
    let operator = rig.start_operator().await?;
    rig.progress.step("JobSets that the operator wrote", jobs);
    rig.until_count::<JobSet>(&namespace, jobs).await?;
    until_suspended(&rig, &namespace).await?;
    let usage = usage::of(operator.process().id())?;
    let calls = rig.noted().await?.operator;
    let (seconds, missing) = written(&calls, jobs);
    let statuses = calls.accepted("patch", "trainjobs/status").len();
    let known = CALLS.map(|(verb, resource)| calls.accepted(verb, resource).len());
    Ok(Ours {
        seconds,
        missing,
        counts: statuses.saturating_sub(jobs),
        others: calls.work.len() - known.iter().sum::<usize>(),
        usage,
    })
}

async fn until_suspended(rig: &Rig, namespace: &str) -> Result<()> {
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), namespace);
    until_ok("every status is written", PATIENCE, || async {
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

/// Seconds from the first call to the one that was the last any job needed, and how many jobs lack one.
fn written(calls: &Calls, jobs: usize) -> (f64, usize) {
    let (mut begin, mut end, mut missing) = (Micros(i64::MAX), Micros(0), 0);
    for (verb, resource) in CALLS {
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
    until_suspended(rig, VERBATIM).await?;
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

fn report(size: Size, jobs: usize, raws: &[f64], ours: &[Ours]) -> Report {
    let spread = |of: fn(&Ours) -> f64| Spread::of(ours.iter().map(of));
    let sum = |of: fn(&Ours) -> usize| ours.iter().map(of).sum::<usize>();
    let (raw, seconds) = (Spread::of(raws.iter().copied()), spread(|round| round.seconds));
    let ratio = Spread::of(ours.iter().zip(raws).map(|(ours, raw)| raw / ours.seconds));
    let peak = spread(|round| megabytes(round.usage.peak));
    let now = spread(|round| megabytes(round.usage.now));
    let cpus = ours.iter().map(|round| round.usage.cpu.as_secs_f64() * 1e3 / float(jobs));
    let cpu = Spread::of(cpus);
    let a_second = |seconds: f64| format!("{:.0}", float(jobs) / seconds);
    let cell = |spread: Spread| format!("{spread:.2}");
    Report {
        bench: "burst",
        title: format!(
            "{jobs} suspended TrainJobs until the last has snapshot, JobSet and status, with JobSet and its webhooks; {} rounds each, median (range); {}",
            size.rounds,
            store(size.fsync)
        ),
        table: vec![
            row([&"", &"seconds", &"jobs/s", &"CPU ms a job", &"most MB"]),
            row([&"raw client", &cell(raw), &a_second(raw.median), &"", &""]),
            row([&"operator", &cell(seconds), &a_second(seconds.median), &cell(cpu), &cell(peak)]),
        ],
        notes: vec![
            format!("raw client / operator: {ratio:.2}; memory at the end {now:.1} MB (PSS)"),
            format!("status writes for counts of JobSets, beside these: {}", sum(|it| it.counts)),
            "Kubeflow Trainer, measured on such a machine: 166 s, 7.8 ms, 110 MB".to_owned(),
        ],
        bars: vec![
            Bar::measured("raw client / operator", ratio.median, Bound::AtLeast(0.8)),
            Bar::measured("CPU in ms a job", cpu.median, Bound::AtMost(1.0)),
            Bar::measured("most memory in MB", peak.max, Bound::AtMost(40.0)),
            Bar::none("jobs that lack something", sum(|round| round.missing)),
            Bar::none("calls for anything else", sum(|round| round.others)),
        ],
        figures: json!({
            "jobs": jobs, "rounds": size.rounds, "fsync": size.fsync, "raw_s": raw, "s": seconds,
            "ratio": ratio, "cpu_ms": cpu, "peak_mb": peak, "pss_mb": now,
            "count_writes": sum(|round| round.counts),
        }),
    }
}
