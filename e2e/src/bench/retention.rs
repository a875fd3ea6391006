//! `retention`: what the retention engine costs with many finished objects, and how fast it deletes (R60 to R65).
//!
//! One control plane, in three steps. At rest: the engine lists everything, and then nothing happens. Edits: while objects fall
//! due one after the other, the policies of all kinds are edited, so that every object is evaluated anew. Backlog: a raw client
//! deletes some objects, then the engine starts anew, and half of all objects are due, while others fall due.

mod kinds;
mod stock;

use std::collections::HashMap;
use std::slice::from_ref;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::time::Instant;

use self::kinds::{DRIPPING, KINDS, all, of_cluster};
use self::stock::{Rig, There, delete, finished};
use super::Size;
use super::calls::{Call, Calls, Micros};
use super::figures::{Times, float};
use super::jobs::in_places;
use super::progress::Progress;
use super::report::{Bar, Bound, Report, row};
use super::rig::store;
use super::usage::{self, Usage, megabytes};
use crate::testenv::apply::apply;
use crate::testenv::fixtures::PATIENCE;
use crate::testenv::retention::Retention;
use crate::testenv::until::until_ok;

/// As many as the bars are about.
const OBJECTS: usize = 100_000;
/// Requests that each side has under way.
const PLACES: usize = 32;
/// Objects that fall due in a second beside other work.
const EACH: usize = 10;
/// The TTL of those, in seconds.
const SOON: u32 = 1;
/// Edits that come one after the other.
const EDITS: u32 = 100;
/// How often is looked at what is left of the backlog, every two seconds, before it is given up.
const TURNS: usize = 600;
/// How many seconds the last work before may take to end: statuses are written every half a minute.
const SETTLE: usize = 40;

/// What came of the step at rest.
struct AtRest {
    usage: Usage,
    /// Milliseconds of processor time a second.
    idle: f64,
    /// Calls a minute that are no watches.
    calls: f64,
    listed_ms: f64,
}

/// What came of the step with edits.
struct Edited {
    /// Milliseconds of processor time of one edit of all policies.
    cpu: f64,
    once: Times,
    many: Times,
}

/// What came of the step with a backlog.
struct Backlog {
    raw: f64,
    ours: f64,
    beside: Times,
    missing: usize,
    left: usize,
    deleted: usize,
    usage: Usage,
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let objects = size.jobs.unwrap_or(OBJECTS).max(100);
    let rig = Rig::start(size.fsync, progress).await?;
    let due = objects / 2;
    let namespaces = rig.at_rest(objects - due).await?;
    let late = rig.namespace("backlog").await?;
    rig.stored("storing those that will be due", due, from_ref(&late)).await?;
    let live = rig.namespace("live").await?;
    rig.policies(&namespaces).await?;
    let soon = DRIPPING.policy("soon", Some(&live), &all(SOON))?;
    apply(&rig.admin, &live, vec![soon]).await?;

    let begun = Instant::now();
    let engine = rig.launch().await?;
    rig.evaluated(&engine, objects).await?;
    let listed_ms = begun.elapsed().as_secs_f64() * 1e3;
    let at_rest = at_rest(&rig, &engine, size.seconds, listed_ms).await?;
    let edited = edited(&rig, &engine, &live, size.seconds).await?;
    drop(engine);
    let backlog = backlog(&rig, &live, &late, due).await?;
    Ok(report(size, objects, &at_rest, &edited, &backlog))
}

async fn at_rest(rig: &Rig, engine: &Retention, seconds: usize, listed_ms: f64) -> Result<AtRest> {
    rig.progress.step("the engine comes to rest", 0);
    let settle = u64::try_from(seconds.min(SETTLE))?;
    tokio::time::sleep(Duration::from_secs(settle)).await;
    let (before, calls) = (usage::of(engine.process().id())?, rig.noted().await?.operator);
    rig.progress.step("nothing happens", 0);
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_secs(u64::try_from(seconds)?)).await;
    let usage = usage::of(engine.process().id())?;
    let passed = begun.elapsed().as_secs_f64();
    let more = rig.noted().await?.operator.work.len() - calls.work.len();
    let idle = usage.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e3 / passed;
    Ok(AtRest { usage, idle, calls: float(more) * 60.0 / passed, listed_ms })
}

async fn edited(rig: &Rig, engine: &Retention, live: &str, seconds: usize) -> Result<Edited> {
    let cpu = || anyhow::Ok(usage::of(engine.process().id())?.cpu.as_secs_f64() * 1e3);
    // Without an edit, with one of all policies, and with many of them, for the same time.
    let mut begun = cpu()?;
    drip(rig, live, "alone", seconds).await?;
    let alone = cpu()? - begun;
    begun = cpu()?;
    apply(&rig.admin, "default", of_cluster(1)?).await?;
    let once = drip(rig, live, "once", seconds).await?;
    let with_edit = cpu()? - begun;
    let (admin, first) = (rig.admin.clone(), of_cluster(2)?);
    let editing = tokio::spawn(async move {
        let mut policies = first;
        for turn in 3..3 + EDITS / u32::try_from(KINDS.len())? {
            apply(&admin, "default", policies).await?;
            policies = of_cluster(turn)?;
        }
        anyhow::Ok(())
    });
    let many = drip(rig, live, "many", seconds).await?;
    editing.await??;
    let calls = rig.noted().await?.operator;
    let times = |dues: &HashMap<String, Micros>| Times::of(since(&calls, live, dues));
    Ok(Edited { cpu: with_edit - alone, once: times(&once), many: times(&many) })
}

async fn backlog(rig: &Rig, live: &str, late: &str, count: usize) -> Result<Backlog> {
    let for_raw = rig.namespace("raw").await?;
    let sample = rig.stored("storing for the raw client", count / 5, from_ref(&for_raw)).await?;
    delete_raw(rig, &for_raw, sample).await?;

    let due =
        KINDS.iter().map(|kind| kind.policy(&format!("due-{}", kind.plural), Some(late), &all(0)));
    apply(&rig.admin, late, due.collect::<Result<_>>()?).await?;
    let engine = rig.launch().await?;
    until_ok("the engine deletes", PATIENCE * 10, || async {
        let deleted = engine.metric("trainjob_retention_deletions_total").await?;
        ensure!(deleted > 0.0, "nothing");
        Ok(())
    })
    .await?;
    rig.progress.step("the engine deletes the backlog", count);
    let (mut dues, mut turn) = (HashMap::new(), 0);
    let left = loop {
        let left = rig.left(late).await?;
        rig.progress.at(count.saturating_sub(left));
        if left == 0 || turn > TURNS {
            break left;
        }
        dues.extend(drip(rig, live, &format!("beside-{turn}"), 1).await?);
        turn += 1;
    };
    // One that stays is counted.
    let all_gone = until_ok("what fell due beside it is gone", PATIENCE, || async {
        let left = rig.left(live).await?;
        ensure!(left == 0, "{left} are left");
        Ok(())
    });
    let _ = all_gone.await;
    let usage = usage::of(engine.process().id())?;
    let noted = rig.noted().await?;
    let ours = deletions(&noted.operator, late);
    let beside = since(&noted.operator, live, &dues);
    Ok(Backlog {
        raw: rate(&deletions(&noted.raw, &for_raw)).context("the raw client deleted nothing")?,
        ours: rate(&ours).context("the engine deleted nothing")?,
        missing: dues.len() - beside.len(),
        beside: Times::of(beside),
        left,
        deleted: count.abs_diff(ours.len()),
        usage,
    })
}

/// The raw client deletes these.
async fn delete_raw(rig: &Rig, namespace: &str, sample: Vec<There>) -> Result<()> {
    rig.progress.step("the raw client deletes", sample.len());
    let (client, namespace, progress) =
        (rig.raw.clone(), namespace.to_owned(), rig.progress.clone());
    in_places(PLACES, sample, move |there| {
        let (client, namespace) = (client.clone(), namespace.clone());
        let progress = progress.clone();
        async move {
            delete(&client, &namespace, &there).await?;
            progress.one();
            Ok(())
        }
    })
    .await?;
    Ok(())
}

/// Stores objects that have just ended for so many seconds, [`EACH`] a second. Returns when each is due.
async fn drip(
    rig: &Rig,
    namespace: &str,
    prefix: &str,
    seconds: usize,
) -> Result<HashMap<String, Micros>> {
    let api = DRIPPING.api(&rig.admin, namespace);
    let mut dues = HashMap::new();
    let mut beat = tokio::time::interval(Duration::from_secs(1) / u32::try_from(EACH)?);
    for number in 0..seconds * EACH {
        beat.tick().await;
        let name = format!("{prefix}-{number:05}");
        let (_, start) = finished(DRIPPING, &api, &name).await?;
        dues.insert(name, Micros::of(start.plus(i64::from(SOON))));
    }
    // What the last of them may take.
    tokio::time::sleep(Duration::from_secs(u64::from(SOON))).await;
    Ok(dues)
}

/// The accepted deletions in a namespace, in the order of their ends.
fn deletions<'c>(calls: &'c Calls, namespace: &str) -> Vec<&'c Call> {
    let is_it = |call: &&Call| {
        call.verb == "delete" && call.was_accepted() && call.object.namespace == namespace
    };
    let mut deleted: Vec<&Call> = calls.work.iter().filter(is_it).collect();
    deleted.sort_by_key(|call| call.completed());
    deleted
}

/// Deletions a second, from the first to the last.
fn rate(deleted: &[&Call]) -> Option<f64> {
    let begin = deleted.iter().map(|call| call.received()).min()?;
    let end = deleted.last()?.completed();
    Some(float(deleted.len()) / end.since(begin) * 1e3)
}

/// How long after it was due each object was deleted, in milliseconds.
fn since(calls: &Calls, namespace: &str, dues: &HashMap<String, Micros>) -> Vec<f64> {
    let deleted = deletions(calls, namespace);
    let late = deleted.iter().filter_map(|call| {
        let due = dues.get(&call.object.name)?;
        Some(call.completed().since(*due))
    });
    late.collect()
}

fn report(
    size: Size,
    objects: usize,
    at_rest: &AtRest,
    edited: &Edited,
    backlog: &Backlog,
) -> Report {
    let figures = Figures {
        steady: megabytes(at_rest.usage.now),
        peak: megabytes(at_rest.usage.peak.max(backlog.usage.peak)),
        ratio: backlog.ours / backlog.raw,
    };
    let cells = |name: &str, of: &Times| {
        let times = [of.p50, of.p99, of.last].map(|ms| format!("{ms:.0}"));
        [name.to_owned()].into_iter().chain(times).collect::<Vec<_>>()
    };
    Report {
        bench: "retention",
        title: format!(
            "{objects} finished objects of {} kinds, 50 policies; {}",
            KINDS.len(),
            store(size.fsync)
        ),
        table: vec![
            row([&"ms from due to accepted", &"p50", &"p99", &"last"]),
            cells("beside one edit of all policies", &edited.once),
            cells(&format!("beside {EDITS} edits"), &edited.many),
            cells("beside the backlog", &backlog.beside),
        ],
        notes: notes(&figures, at_rest, edited, backlog),
        bars: bars(&figures, at_rest, edited, backlog),
        figures: json!({
            "objects": objects, "fsync": size.fsync, "pss_mb": figures.steady,
            "peak_mb": figures.peak, "idle_ms_per_second": at_rest.idle,
            "idle_calls_per_minute": at_rest.calls, "listed_ms": at_rest.listed_ms,
            "edit_cpu_ms": edited.cpu, "beside_edit_ms": edited.once,
            "beside_edits_ms": edited.many, "raw_rate": backlog.raw, "rate": backlog.ours,
            "ratio": figures.ratio, "beside_backlog_ms": backlog.beside,
        }),
    }
}

/// What is made of several steps.
struct Figures {
    /// Memory at rest, in megabytes.
    steady: f64,
    /// The most memory of both engines, in megabytes.
    peak: f64,
    /// The rate of the engine by that of the raw client.
    ratio: f64,
}

fn notes(figures: &Figures, at_rest: &AtRest, edited: &Edited, backlog: &Backlog) -> Vec<String> {
    let Figures { steady, peak, ratio } = figures;
    vec![
        format!(
            "memory: at rest {steady:.1} MB (PSS), at most {peak:.1} MB; idle: {:.2} ms CPU a second and {:.1} calls a minute; listed and evaluated in {:.0} ms",
            at_rest.idle, at_rest.calls, at_rest.listed_ms
        ),
        format!(
            "an edit of all policies: {:.0} ms CPU, what falls due beside it not counted",
            edited.cpu
        ),
        format!(
            "engine / raw client: {ratio:.2} ({:.0} and {:.0} deletions a second)",
            backlog.ours, backlog.raw
        ),
    ]
}

fn bars(figures: &Figures, at_rest: &AtRest, edited: &Edited, backlog: &Backlog) -> Vec<Bar> {
    let at_most =
        |what: &str, value: f64, most: f64| Bar::measured(what, value, Bound::AtMost(most));
    vec![
        at_most("memory at rest in MB", figures.steady, 64.0),
        at_most("most memory in MB", figures.peak, 96.0),
        at_most("ms CPU a second at rest", at_rest.idle, 1.0),
        at_most("ms CPU of an edit of all", edited.cpu, 1_000.0),
        at_most("p99 ms beside an edit", edited.once.p99, 2_000.0),
        at_most("p99 ms beside many edits", edited.many.p99, 2_000.0),
        at_most("p99 ms beside the backlog", backlog.beside.p99, 2_000.0),
        Bar::measured("engine / raw client", figures.ratio, Bound::AtLeast(0.9)),
        Bar::none("objects of the backlog left", backlog.left),
        Bar::none("objects without just one deletion", backlog.deleted),
        Bar::none("objects that fell due and stayed", backlog.missing),
    ]
}
