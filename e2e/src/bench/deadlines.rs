//! `deadlines`: running TrainJobs whose deadlines all come in the same second.
//!
//! The jobs run when they get their deadlines, which the definition allows once. A deadline is enforced when
//! the failure is stored and the deletion of the JobSet is accepted; that holds for all sides.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions, PropagationPolicy,
};
use kube::core::Request;
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};
use trainjob_api::conditions::{FAILED, MESSAGE_DEADLINE_EXCEEDED, REASON_DEADLINE_EXCEEDED};
use trainjob_api::{JobSet, TrainJob};

use super::Size;
use super::calls::{Call, Calls, Micros};
use super::figures::{Spread, Times, float};
use super::jobs::{arm, create, in_seconds, on_torch, side_by_side, still_to_come};
use super::progress::Progress;
use super::report::{Bar, Report, row};
use super::rig::{Rig, control_plane, store};
use super::trainer::{self, Trainer};
use super::usage::{self, Usage, megabytes};
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::product::Product;

/// As many as Kubeflow Trainer makes in a minute.
const JOBS: usize = 500;

/// What came of one round of the operator, or of Kubeflow Trainer.
struct Round {
    /// From the due second to the last accepted deletion.
    seconds: f64,
    stored: Times,
    stopped: Times,
    early: usize,
    /// Jobs without a stored failure, or whose JobSet nobody deleted.
    missing: usize,
    /// JobSets that are left.
    left: usize,
    /// Processor time of each job, in milliseconds.
    cpu: f64,
    usage: Usage,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let jobs = size.jobs.unwrap_or(JOBS);
    let (mut raws, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.rounds {
        raws.push(raw_round(size, jobs, progress).await?);
        let rig = Rig::start(control_plane(size.fsync), progress).await?;
        let operator = rig.start_operator().await?;
        ours.push(round(&rig, &operator, jobs, |noted| noted.operator).await?);
    }
    for _ in 0..size.trainer_rounds {
        let rig = Rig::start(control_plane(size.fsync), progress).await?;
        let manager = Trainer::install(&rig).await?.start(&rig).await?;
        theirs.push(round(&rig, &manager, jobs, |noted| noted.trainer).await?);
    }
    Ok(report(size, jobs, &raws, &ours, &theirs))
}

/// Seconds from the raw client's first call to its last.
async fn raw_round(size: Size, jobs: usize, progress: &Progress) -> Result<f64> {
    let rig = Rig::start(control_plane(size.fsync), progress).await?;
    let operator = rig.start_operator().await?;
    let namespace = running(&rig, jobs).await?;
    operator.sigterm()?;
    operator.wait(PATIENCE).await?;
    let sets: Api<JobSet> = Api::namespaced(rig.admin.clone(), &namespace);
    let sets = sets.list_metadata(&ListParams::default()).await?.items;
    let sets = sets.into_iter().map(|set| (set.name_any(), set.uid())).collect::<Vec<_>>();
    rig.progress.step("the raw client stops TrainJobs", jobs);
    let (client, progress) = (rig.raw.clone(), rig.progress.clone());
    let within = namespace.clone();
    side_by_side(sets, move |(name, uid)| {
        let (client, namespace, progress) = (client.clone(), within.clone(), progress.clone());
        async move {
            stop(&client, &namespace, &name, uid).await?;
            progress.one();
            Ok(())
        }
    })
    .await?;
    let calls = rig.noted().await?.raw;
    let ends = stops(&calls, &namespace);
    let begin = failures(&calls, &namespace).into_values().map(|(received, _)| received).min();
    let end = ends.into_values().max();
    Ok(end.zip(begin).map_or(f64::NAN, |(end, begin)| end.since(begin) / 1e3))
}

/// Stores the failure of a job and deletes its JobSet, as the operator does.
async fn stop(client: &Client, namespace: &str, name: &str, uid: Option<String>) -> Result<()> {
    let failed = json!({"status": {"conditions": [{
        "type": FAILED,
        "status": "True",
        "reason": REASON_DEADLINE_EXCEEDED,
        "message": MESSAGE_DEADLINE_EXCEEDED,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    let jobs = Request::new(TrainJob::url_path(&(), Some(namespace)));
    let how = PatchParams::default();
    let patch = jobs.patch_subresource("status", name, &how, &Patch::Merge(failed))?;
    client.request_text(patch).await?;
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::default()
    };
    let sets = Request::new(JobSet::url_path(&(), Some(namespace)));
    client.request_text(sets.delete(name, &params)?).await?;
    Ok(())
}

/// Jobs with all that runs of them. There are no nodes: their Pods wait.
async fn running(rig: &Rig, jobs: usize) -> Result<String> {
    let namespace = rig.cluster.namespace("deadlines").await?;
    create(rig, &namespace, &on_torch(), jobs).await?;
    rig.progress.step("Pods of TrainJobs", jobs);
    rig.until_count::<Pod>(&namespace, jobs).await?;
    Ok(namespace)
}

async fn round(
    rig: &Rig,
    controller: &Product,
    jobs: usize,
    of: fn(super::calls::Noted) -> Calls,
) -> Result<Round> {
    let namespace = running(rig, jobs).await?;
    // A hundred a second is less than any machine seen so far can do.
    let due = in_seconds(float(jobs) / 100.0);
    arm(rig, &namespace, due).await?;
    let before = usage::of(controller.process().id())?;
    still_to_come(due)?;
    tokio::time::sleep(Micros::of(due).away()).await;
    rig.progress.step("deadlines have come; JobSets that are left of", jobs);
    let left = rig.until_count::<JobSet>(&namespace, 0).await?;
    let usage = usage::of(controller.process().id())?;
    let (calls, due) = (of(rig.noted().await?), Micros::of(due));
    let (failures, stops) = (failures(&calls, &namespace), stops(&calls, &namespace));
    let stopped = Times::of(stops.values().map(|end| end.since(due)));
    Ok(Round {
        seconds: stopped.last / 1e3,
        stored: Times::of(failures.values().map(|(_, end)| end.since(due))),
        stopped,
        early: failures.values().filter(|(received, _)| *received < due).count(),
        missing: jobs.abs_diff(failures.len()).max(jobs.abs_diff(stops.len())),
        left,
        cpu: usage.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e3 / float(jobs),
        usage,
    })
}

/// When the first failure by deadline of each job was received, and when it was stored.
fn failures(calls: &Calls, namespace: &str) -> BTreeMap<String, (Micros, Micros)> {
    let mut failures = BTreeMap::new();
    for call in calls.accepted("patch", "trainjobs/status") {
        if is_failure(call) && call.object.namespace == namespace {
            let times = (call.received(), call.completed());
            failures.entry(call.object.name.clone()).or_insert(times);
        }
    }
    failures
}

/// Whether it stores that a deadline has come.
pub(super) fn is_failure(call: &Call) -> bool {
    let conditions = call.sent.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|it| it["reason"] == REASON_DEADLINE_EXCEEDED)
}

/// When the deletion of each JobSet was accepted.
fn stops(calls: &Calls, namespace: &str) -> BTreeMap<String, Micros> {
    let deleted = calls.accepted("delete", "jobsets").into_iter();
    let deleted = deleted.filter(|call| call.object.namespace == namespace);
    deleted.map(|call| (call.object.name.clone(), call.completed())).collect()
}

/// The figures of one side.
#[derive(Serialize)]
struct Side {
    seconds: Spread,
    stored_p50_ms: Spread,
    stored_last_ms: Spread,
    stopped_p50_ms: Spread,
    cpu_ms: Spread,
    peak_mb: Spread,
    pss_mb: Spread,
}

impl Side {
    fn of(rounds: &[Round]) -> Self {
        let spread = |of: fn(&Round) -> f64| Spread::of(rounds.iter().map(of));
        Self {
            seconds: spread(|round| round.seconds),
            stored_p50_ms: spread(|round| round.stored.p50),
            stored_last_ms: spread(|round| round.stored.last),
            stopped_p50_ms: spread(|round| round.stopped.p50),
            cpu_ms: spread(|round| round.cpu),
            peak_mb: spread(|round| megabytes(round.usage.peak)),
            pss_mb: spread(|round| megabytes(round.usage.now)),
        }
    }

    fn row(&self, name: &str) -> Vec<String> {
        let (seconds, cpu) = (format!("{:.2}", self.seconds), format!("{:.2}", self.cpu_ms));
        let Self { stored_p50_ms, stored_last_ms, stopped_p50_ms, peak_mb, pss_mb, .. } = self;
        let (peak, pss) = (format!("{peak_mb:.1}"), format!("{pss_mb:.1}"));
        row([&name, &seconds, stored_p50_ms, stored_last_ms, stopped_p50_ms, &cpu, &peak, &pss])
    }
}

fn report(size: Size, jobs: usize, raws: &[f64], ours: &[Round], theirs: &[Round]) -> Report {
    let sum = |of: fn(&Round) -> usize| ours.iter().map(of).sum::<usize>();
    let (raw, us) = (Spread::of(raws.iter().copied()), Side::of(ours));
    let ratio = Spread::of(ours.iter().zip(raws).map(|(ours, raw)| raw / ours.seconds));
    let them = (!theirs.is_empty()).then(|| Side::of(theirs));
    let mut table = vec![
        row([
            &"",
            &"seconds",
            &"failed p50 ms",
            &"last ms",
            &"stopped p50 ms",
            &"CPU ms a job",
            &"most MB",
            &"PSS MB",
        ]),
        row([&"raw client", &format!("{raw:.2}"), &"", &"", &"", &"", &"", &""]),
        us.row("operator"),
    ];
    table.extend(them.as_ref().map(|side| side.row(trainer::NAME)));
    let mut notes = vec![format!("raw client / operator: {ratio:.2}")];
    notes.extend(them.as_ref().map(|side| {
        let time = side.seconds.median / us.seconds.median;
        let left = theirs.iter().map(|round| round.left).sum::<usize>();
        format!("{} / operator: time {time:.1}; JobSets it left: {left}", trainer::NAME)
    }));
    Report {
        bench: "deadlines",
        title: format!(
            "{jobs} running TrainJobs with a deadline in the same second, until the last failure is stored and the last JobSet's deletion accepted; {} rounds each, median (range); {}",
            size.rounds,
            store(size.fsync)
        ),
        table,
        notes,
        bars: vec![
            Bar::none("deadlines enforced before they came", sum(|round| round.early)),
            Bar::none("jobs that were not stopped", sum(|round| round.missing)),
            Bar::none("JobSets left", sum(|round| round.left)),
        ],
        figures: json!({
            "jobs": jobs, "rounds": size.rounds, "fsync": size.fsync, "raw_s": raw,
            "ratio": ratio, "operator": us, "trainer": them,
        }),
    }
}
