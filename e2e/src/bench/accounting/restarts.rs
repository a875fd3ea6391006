//! `accounting-restarts`: how much later the next attempt of a training comes because its Pods are counted first (F2, AH1).
//!
//! A control plane with JobSet and simulated nodes, in which a job of a hundred Pods loses them and is restarted, again and
//! again: unmarked, in `Observe` and in `Exact`, in turns, so that what changes with time changes all of them. They fail; or
//! they are deleted by force and no kubelet tells of them, and then each is held for the ten seconds in which one could (AE1 c).

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use trainjob_api::conditions;

use crate::bench::Size;
use crate::bench::figures::Times;
use crate::bench::progress::Progress;
use crate::bench::report::{Bar, Bound, Report, row};
use crate::bench::rig::store;
use crate::testenv::accounting::{
    Accounting, NAMESPACE, SERVICE_ACCOUNT, install_accounting, start_operator,
};
use crate::testenv::apply::apply;
use crate::testenv::cluster::Options;
use crate::testenv::fixtures::status::conditions_of;
use crate::testenv::fixtures::{COMPLETES_AFTER, World, runtime};
use crate::testenv::until::until_ok;

/// Pods of the job.
const PODS: usize = 100;
/// How long all restarts may take.
const WITHIN: Duration = Duration::from_mins(15);
/// Which attempt a Pod is of.
const ATTEMPT: &str = "jobset.sigs.k8s.io/restart-attempt";

/// How an attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Its Pods fail a second after they run.
    Failed,
    /// Somebody deletes all of its Pods by force once they run.
    Forced,
}

impl End {
    /// The name of the runtime with which it happens so often.
    fn runtime(self, restarts: usize) -> String {
        match self {
            Self::Failed => format!("fails-{restarts}-times"),
            Self::Forced => format!("is-forced-{restarts}-times"),
        }
    }

    /// What makes a simulated Pod do it.
    fn annotations(self) -> Value {
        match self {
            Self::Failed => json!({COMPLETES_AFTER: "1s", "e2e.trainjob.dev/outcome": "fail"}),
            Self::Forced => json!({"e2e.trainjob.dev/sigterm": "unreported"}),
        }
    }
}

/// So many of a hundred for each that is asked for, one at least.
fn share(restarts: usize, of_hundred: usize) -> usize {
    (restarts * of_hundred / 100).max(1)
}

/// What is measured in each round, in this order, and how many of a hundred restarts in it. The bar between the first and the
/// third is the narrowest, and a slowest restart says little of a few.
const RUNS: [(&str, End, usize); 5] = [
    (OFF, End::Failed, 200),
    (OFF, End::Forced, 20),
    ("Observe", End::Failed, 200),
    ("Exact", End::Failed, 100),
    ("Exact", End::Forced, 20),
];
/// The mode in which nothing is marked.
const OFF: &str = "Off";
/// How many rounds there are.
const ROUNDS: usize = 5;

/// Milliseconds from the first end of an attempt to the first Pod of the next one.
struct Restarts {
    off: Times,
    observe: Times,
    exact: Times,
    forced_off: Times,
    forced_exact: Times,
    /// Restarts that did not come.
    missed: usize,
}

/// As many restarts as the bars are about.
const RESTARTS: usize = 50;
/// How much later the next attempt may come than without accounting, in milliseconds.
const LATER: f64 = 2_000.0;
/// The same after a deletion by force.
const FORCED_LATER: f64 = 12_000.0;
/// What makes no difference between two runs on a busy machine, in milliseconds.
const NO_LATER: f64 = 500.0;

pub(in crate::bench) async fn run(size: Size, progress: &Progress) -> Result<Report> {
    let in_a_round = (size.jobs.unwrap_or(RESTARTS) / ROUNDS).max(1);
    let measured = measure(in_a_round, size.fsync, progress).await?;
    Ok(report(size, in_a_round * ROUNDS, &measured))
}

/// So many restarts in each round, shared as [`RUNS`] says.
async fn measure(restarts: usize, fsync: bool, progress: &Progress) -> Result<Restarts> {
    progress.step("starting a control plane for restarts", 0);
    let options = Options { fsync, ..Options::default() };
    let world = Box::pin(World::without_operator(options)).await?;
    install_accounting(&world.cluster).await?;
    for (_, end, of_hundred) in RUNS {
        let restarts = share(restarts, of_hundred);
        let mut runtime = runtime(&end.runtime(restarts), &end.annotations(), 1, None);
        let job_set = runtime.pointer_mut("/spec/template/spec").and_then(|it| it.as_object_mut());
        let policy = json!({"maxRestarts": restarts});
        job_set.context("no JobSet")?.insert("failurePolicy".to_owned(), policy);
        apply(&world.cluster.client().await?, "default", vec![runtime]).await?;
    }
    let credentials = world.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT).await?;
    let program = Accounting::as_shipped(&world.cluster, credentials).await?;
    program.leads().await?;
    let (mut runs, mut missed) = ([const { Vec::new() }; RUNS.len()], 0);
    for _ in 0..ROUNDS {
        let mut running = None;
        for ((mode, end, of_hundred), waited) in RUNS.into_iter().zip(&mut runs) {
            if running.replace(mode) != Some(mode) {
                start(&world, mode).await?;
            }
            let expected = share(restarts, of_hundred);
            let came = restart(&world, mode, end, expected, progress).await?;
            missed += expected.abs_diff(came.len());
            waited.extend(came);
        }
    }
    let [off, forced_off, observe, exact, forced_exact] = runs.map(Times::of);
    Ok(Restarts { off, observe, exact, forced_off, forced_exact, missed })
}

/// Replaces the operator by one in this mode.
async fn start(world: &World, mode: &str) -> Result<()> {
    if mode == OFF {
        world.start_operator().await?;
        return Ok(());
    }
    start_operator(world, mode).await
}

/// A job is restarted so often. How long each restart took, in milliseconds.
async fn restart(
    world: &World,
    mode: &str,
    end: End,
    restarts: usize,
    progress: &Progress,
) -> Result<Vec<f64>> {
    progress.step(format!("a job is restarted, accounting is {mode}, Pods are {end:?}"), restarts);
    let tenant = world.tenant(&mode.to_lowercase()).await?;
    let watch = Watch::start(&tenant.client, &tenant.namespace).await?;
    tenant.create("job", &end.runtime(restarts), json!({"trainer": {"numNodes": PODS}})).await?;
    until_ok("it has failed for good", WITHIN, || async {
        progress.at(watch.waited().len());
        if end == End::Forced {
            delete_by_force(&tenant.pods).await?;
        }
        let job = tenant.jobs.get("job").await?;
        let failed = conditions::find_true(conditions_of(&job), conditions::FAILED);
        failed.map(|_| ()).context("it has not")
    })
    .await?;
    Ok(watch.waited())
}

/// Deletes the Pods of an attempt by force, if all of them run.
async fn delete_by_force(pods: &Api<Pod>) -> Result<()> {
    let of = |attempt: &str| ListParams::default().labels(&format!("{ATTEMPT}={attempt}"));
    let mut running = BTreeMap::<String, usize>::new();
    for pod in pods.list(&ListParams::default()).await? {
        let runs = pod.metadata.deletion_timestamp.is_none() && phase(&pod) == Some("Running");
        if let (true, Some(attempt)) = (runs, pod.labels().get(ATTEMPT)) {
            *running.entry(attempt.clone()).or_default() += 1;
        }
    }
    for (attempt, _) in running.iter().filter(|(_, running)| **running == PODS) {
        pods.delete_collection(&DeleteParams::default().grace_period(0), &of(attempt)).await?;
    }
    Ok(())
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// When the first Pod of an attempt was seen, and when the first was seen failed or deleted.
#[derive(Debug, Clone, Copy, Default)]
struct Attempt {
    began: Option<Instant>,
    ended: Option<Instant>,
}

/// Attempts by number.
type Attempts = BTreeMap<usize, Attempt>;

/// Somebody who watches the Pods of a namespace.
struct Watch {
    attempts: Arc<Mutex<Attempts>>,
    task: JoinHandle<()>,
}

impl Watch {
    async fn start(client: &Client, namespace: &str) -> Result<Self> {
        let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let list = api.list(&ListParams::default()).await?;
        let mut version = list.metadata.resource_version.context("a list without a version")?;
        let attempts = Arc::<Mutex<Attempts>>::default();
        let noted = Arc::clone(&attempts);
        let task = tokio::spawn(async move {
            while let Ok(events) = api.watch(&WatchParams::default(), &version).await {
                let mut events = pin!(events);
                while let Some(Ok(event)) = events.next().await {
                    let (pod, is_gone) = match event {
                        WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
                        WatchEvent::Deleted(pod) => (pod, true),
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                    };
                    version = pod.resource_version().unwrap_or(version);
                    note(&mut noted.lock().unwrap_or_else(PoisonError::into_inner), &pod, is_gone);
                }
            }
        });
        Ok(Self { attempts, task })
    }

    /// How long each restart took that has come.
    fn waited(&self) -> Vec<f64> {
        let attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let restarts = attempts.iter().filter_map(|(number, attempt)| {
            let next = attempts.get(&(number + 1))?;
            Some(next.began?.duration_since(attempt.ended?).as_secs_f64() * 1e3)
        });
        restarts.collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn note(attempts: &mut Attempts, pod: &Pod, is_gone: bool) {
    let number = pod.labels().get(ATTEMPT).and_then(|number| number.parse().ok());
    let Some(number) = number else { return };
    let attempt = attempts.entry(number).or_default();
    let now = Instant::now();
    attempt.began.get_or_insert(now);
    if is_gone || pod.metadata.deletion_timestamp.is_some() || phase(pod) == Some("Failed") {
        attempt.ended.get_or_insert(now);
    }
}

fn report(size: Size, restarts: usize, measured: &Restarts) -> Report {
    let Restarts { off, observe, exact, forced_off, forced_exact, missed } = measured;
    let line = |what: &str, times: &Times| {
        let times = [times.first, times.p50, times.p99, times.last].map(|ms| format!("{ms:.0}"));
        [what.to_owned()].into_iter().chain(times).collect()
    };
    let later = |what: &str, times: &Times, than: &Times, most: f64| {
        Bar::measured(what, times.p99 - than.p99, Bound::AtMost(most))
    };
    Report {
        bench: "accounting-restarts",
        title: format!(
            "{restarts} restarts of {PODS} Pods, twice as many Off and in Observe; {}",
            store(size.fsync)
        ),
        table: vec![
            row([&"to the next attempt; ms", &"first", &"p50", &"p99", &"last"]),
            line("from a failure, Off", off),
            line("from a failure, Observe", observe),
            line("from a failure, Exact", exact),
            line("from a deletion by force, Off", forced_off),
            line("from a deletion by force, Exact", forced_exact),
        ],
        notes: Vec::new(),
        bars: vec![
            later("p99 ms by which Exact delays the next attempt", exact, off, LATER),
            later("p99 ms by which Observe delays the next attempt", observe, off, NO_LATER),
            later(
                "p99 ms by which Exact delays the next attempt after a deletion by force",
                forced_exact,
                forced_off,
                FORCED_LATER,
            ),
            Bar::none("restarts that did not come", *missed),
        ],
        figures: json!({
            "restarts": restarts, "fsync": size.fsync, "off_ms": off, "observe_ms": observe, "exact_ms": exact,
            "forced_off_ms": forced_off, "forced_exact_ms": forced_exact,
        }),
    }
}
