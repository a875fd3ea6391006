//! `life`: the calls of whole lives.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use trainjob_api::v1alpha1::train_job::{RuntimeRef, TrainJobSpec};
use trainjob_api::{JobSet, TrainJob, conditions};

use super::calls::{Call, Calls};
use super::progress::Progress;
use super::report::{Bar, Report};
use super::rig::{Rig, VERBATIM};
use super::trainer::{self, Trainer};
use super::{Size, judge};
use crate::testenv::apply::apply;
use crate::testenv::cluster::Options;
use crate::testenv::fixtures::status::{conditions_of, finished_at, is_failed_by_deadline};
use crate::testenv::fixtures::{COMPLETES, COMPLETES_AFTER, PATIENCE, RUNS, runtime};
use crate::testenv::until::{until, until_ok};

/// Seconds that a job of [`RUNS`] may run.
const DEADLINE: i64 = 4;

/// A life: what it is called, on which runtime, and what its spec says besides.
struct Life {
    name: &'static str,
    runtime: &'static str,
    suspended: bool,
    deadline: Option<i64>,
}

const LIVES: [Life; 3] = [
    Life { name: "completes", runtime: COMPLETES, suspended: false, deadline: None },
    Life { name: "hits its deadline", runtime: RUNS, suspended: false, deadline: Some(DEADLINE) },
    Life { name: "suspended, resumed", runtime: COMPLETES, suspended: true, deadline: None },
];

/// A figure of a life, with its name.
type Figure = (&'static str, fn(&Lived) -> usize);

/// What is told of a side of which not every kind of call is.
const SUMS: [Figure; 3] = [
    ("all", |life| life.counts.values().sum()),
    ("GETs among them", |life| life.reads),
    ("events, apart", |life| life.events),
];

/// The calls of a life, by resource and verb.
type Counts = BTreeMap<(String, String), usize>;

/// What came of a life.
struct Lived {
    name: &'static str,
    counts: Counts,
    events: usize,
    reads: usize,
    idle: usize,
}

impl Lived {
    /// What `calls` has that was not `known` when the life began.
    fn between(life: &Life, known: &Calls, calls: &Calls) -> Self {
        let work = calls.work.get(known.work.len()..).unwrap_or_default();
        Self {
            name: life.name,
            counts: counts(work),
            events: calls.events.len() - known.events.len(),
            reads: work.iter().filter(|call| call.verb == "get").count(),
            idle: work.iter().filter(|call| changes_nothing(call)).count(),
        }
    }
}

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let rig = prepare(size, progress).await?;
    let watched = judge::watch(&rig).await?;
    let _operator = rig.start_operator().await?;
    let mut lived = Vec::new();
    let mut known = Calls::default();
    for life in &LIVES {
        live(&rig, life, Some(1)).await?;
        let calls = rig.noted().await?.operator;
        lived.push(Lived::between(life, &known, &calls));
        known = calls;
    }
    let violations = judge::violations(&rig, &watched).await?;
    let theirs = match size.trainer_rounds {
        0 => Vec::new(),
        _ => lives_of_trainer(size, progress).await?,
    };
    Ok(report(&lived, &theirs, &violations))
}

/// A control plane with fake nodes, and runtimes whose Pods run or complete.
async fn prepare(size: Size, progress: &Progress) -> Result<Rig> {
    let rig = Rig::start(Options { fsync: size.fsync, ..Options::default() }, progress).await?;
    rig.verbatim_namespace().await?;
    let delay = json!({COMPLETES_AFTER: "1s"});
    let runtimes = vec![runtime(RUNS, &json!({}), 1, None), runtime(COMPLETES, &delay, 1, None)];
    apply(&rig.admin, "default", runtimes).await?;
    Ok(rig)
}

/// The same lives under Kubeflow Trainer, which has no TTL: somebody else deletes the jobs.
async fn lives_of_trainer(size: Size, progress: &Progress) -> Result<Vec<Lived>> {
    let rig = prepare(size, progress).await?;
    let _manager = Trainer::install(&rig).await?.start(&rig).await?;
    let mut lived = Vec::new();
    let mut known = Calls::default();
    for life in &LIVES {
        live(&rig, life, None).await?;
        let calls = rig.noted().await?.trainer;
        lived.push(Lived::between(life, &known, &calls));
        known = calls;
    }
    Ok(lived)
}

/// Lets one job live, from its creation to its last trace. Without a TTL it is deleted once it is over.
async fn live(rig: &Rig, life: &Life, ttl: Option<i32>) -> Result<()> {
    rig.progress.step(format!("a job that {}", life.name), 0);
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), VERBATIM);
    let name = "job";
    let spec = TrainJobSpec {
        runtime_ref: RuntimeRef { name: life.runtime.to_owned(), ..RuntimeRef::default() },
        suspend: life.suspended.then_some(true),
        active_deadline_seconds: life.deadline,
        ttl_seconds_after_finished: ttl,
        ..TrainJobSpec::default()
    };
    api.create(&PostParams::default(), &TrainJob::new(name, spec)).await?;
    if life.suspended {
        until_ok("it is suspended and counted", PATIENCE, || async {
            let job = api.get(name).await?;
            let suspended = conditions::find_true(conditions_of(&job), conditions::SUSPENDED);
            ensure!(suspended.is_some(), "no condition says so");
            let counted = job.status.is_some_and(|status| status.jobs_status.is_some());
            ensure!(counted, "it has no counts");
            Ok(())
        })
        .await?;
        let resume = Patch::Merge(json!({"spec": {"suspend": false}}));
        api.patch(name, &PatchParams::default(), &resume).await?;
    }
    if ttl.is_none() {
        until_over(rig, &api, name).await?;
        api.delete(name, &DeleteParams::foreground()).await?;
    }
    until(format!("the job that {} is gone", life.name), PATIENCE, || async {
        api.get_opt(name).await.ok()?.is_none().then_some(())
    })
    .await
}

/// Waits until a job has ended and, if its deadline ended it, nothing of it runs.
async fn until_over(rig: &Rig, api: &Api<TrainJob>, name: &str) -> Result<()> {
    let sets: Api<JobSet> = Api::namespaced(rig.admin.clone(), VERBATIM);
    until_ok("the job is over", PATIENCE, || async {
        let job = api.get(name).await?;
        finished_at(&job)?;
        let stopped = !is_failed_by_deadline(&job) || sets.get_opt(name).await?.is_none();
        ensure!(stopped, "its JobSet is there");
        Ok(())
    })
    .await
}

fn counts(calls: &[Call]) -> Counts {
    let mut counts = Counts::new();
    for call in calls {
        *counts.entry((call.resource(), call.verb.clone())).or_default() += 1;
    }
    counts
}

/// Whether the API server accepted a write and stored nothing: the version is still the one that the
/// write was made for.
fn changes_nothing(call: &Call) -> bool {
    let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
    let changes = matches!(call.verb.as_str(), "patch" | "update");
    changes
        && call.was_accepted()
        && version(&call.sent).is_some_and(|sent| version(&call.answered) == Some(sent))
}

fn report(lived: &[Lived], theirs: &[Lived], violations: &[String]) -> Report {
    let kinds: BTreeSet<&(String, String)> =
        lived.iter().flat_map(|life| life.counts.keys()).collect();
    let line = |name: String, count: &dyn Fn(&Lived) -> usize| {
        let cells = lived.iter().map(|life| count(life).to_string());
        [name].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let mut table = vec![
        [String::new()].into_iter().chain(lived.iter().map(|life| life.name.to_owned())).collect(),
    ];
    for kind in kinds {
        let (resource, verb) = kind;
        let count = |life: &Lived| life.counts.get(kind).copied().unwrap_or(0);
        table.push(line(format!("{verb} {resource}"), &count));
    }
    table.push(line("all".to_owned(), &|life| life.counts.values().sum()));
    table.push(line("events, apart".to_owned(), &|life| life.events));
    for (what, count) in SUMS.iter().filter(|_| !theirs.is_empty()) {
        let cells = theirs.iter().map(|life| count(life).to_string());
        table.push([format!("{}: {what}", trainer::NAME)].into_iter().chain(cells).collect());
    }
    let sum = |of: fn(&Lived) -> usize| lived.iter().map(of).sum::<usize>();
    let named = |counts: &Counts| {
        let named = counts.iter();
        named
            .map(|((resource, verb), n)| (format!("{verb} {resource}"), json!(n)))
            .collect::<serde_json::Map<_, _>>()
    };
    let note = format!("{} has no TTL: its calls are without a deletion", trainer::NAME);
    let mut notes = vec![judge::note(violations)];
    notes.extend((!theirs.is_empty()).then_some(note));
    let all = theirs.iter().map(|life| (life.name, life.counts.values().sum::<usize>()));
    let all: BTreeMap<_, _> = all.collect();
    let figures = lived.iter().map(|life| (life.name.to_owned(), json!(named(&life.counts))));
    Report {
        bench: "life",
        title: "calls of the operator in whole lives, each with a TTL".to_owned(),
        table,
        notes,
        bars: vec![
            Bar::none("GETs", sum(|life| life.reads)),
            Bar::none("writes that change nothing", sum(|life| life.idle)),
            judge::bar(violations),
        ],
        figures: json!({
            "operator": figures.collect::<serde_json::Map<_, _>>(), "trainer": all,
        }),
    }
}
