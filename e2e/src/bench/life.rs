//! `life`: the calls of whole lives.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use trainjob_api::trainjob::{RuntimeRef, TrainJobSpec};
use trainjob_api::{TrainJob, conditions};

use crate::apply::apply;
use crate::cluster::Options;
use crate::fixtures::status::conditions_of;
use crate::fixtures::{COMPLETES, PATIENCE, RUNS, runtime};
use crate::until::{until, until_ok};

use super::calls::Call;
use super::progress::Progress;
use super::report::{Bar, Report};
use super::rig::{Rig, VERBATIM};
use super::{Size, judge};

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

pub(super) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let rig = Rig::start(Options { fsync: size.fsync, ..Options::default() }, progress).await?;
    rig.verbatim_namespace().await?;
    let delay = json!({"pod-complete.stage.kwok.x-k8s.io/delay": "1s"});
    let runtimes = vec![runtime(RUNS, &json!({}), 1, None), runtime(COMPLETES, &delay, 1, None)];
    apply(&rig.admin, "default", runtimes).await?;
    let watched = judge::watch(&rig).await?;
    let _operator = rig.start_operator().await?;
    let (mut known, mut told) = (0, 0);
    let mut lived = Vec::new();
    for life in &LIVES {
        live(&rig, life).await?;
        let calls = rig.noted().await?.operator;
        let of_life = calls.work.get(known..).unwrap_or_default();
        lived.push(Lived {
            name: life.name,
            counts: counts(of_life),
            events: calls.events.len() - told,
            reads: of_life.iter().filter(|call| call.verb == "get").count(),
            idle: of_life.iter().filter(|call| changes_nothing(call)).count(),
        });
        (known, told) = (calls.work.len(), calls.events.len());
    }
    let violations = judge::violations(&rig, &watched).await?;
    Ok(report(&lived, &violations))
}

/// Lets one job live, from its creation to its last trace.
async fn live(rig: &Rig, life: &Life) -> Result<()> {
    rig.progress.step(format!("a job that {}", life.name), 0);
    let api: Api<TrainJob> = Api::namespaced(rig.admin.clone(), VERBATIM);
    let name = "job";
    let spec = TrainJobSpec {
        runtime_ref: RuntimeRef { name: life.runtime.to_owned(), ..RuntimeRef::default() },
        suspend: life.suspended.then_some(true),
        active_deadline_seconds: life.deadline,
        ttl_seconds_after_finished: Some(1),
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
    until(format!("the job that {} is gone", life.name), PATIENCE, || async {
        api.get_opt(name).await.ok()?.is_none().then_some(())
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

fn report(lived: &[Lived], violations: &[String]) -> Report {
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
    let sum = |of: fn(&Lived) -> usize| lived.iter().map(of).sum::<usize>();
    let named = |counts: &Counts| {
        let named = counts.iter();
        named
            .map(|((resource, verb), n)| (format!("{verb} {resource}"), json!(n)))
            .collect::<serde_json::Map<_, _>>()
    };
    let figures = lived.iter().map(|life| (life.name.to_owned(), json!(named(&life.counts))));
    Report {
        bench: "life",
        title: "calls of the operator in whole lives, each with a TTL".to_owned(),
        table,
        notes: vec![judge::note(violations)],
        bars: vec![
            Bar::none("GETs", sum(|life| life.reads)),
            Bar::none("writes that change nothing", sum(|life| life.idle)),
            judge::bar(violations),
        ],
        figures: Value::Object(figures.collect()),
    }
}
