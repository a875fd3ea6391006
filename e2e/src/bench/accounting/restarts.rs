//! How much later the next attempt of a training comes because its Pods are counted first (F2, AH1).
//!
//! A control plane with JobSet and simulated nodes, in which jobs of a few Pods fail and are restarted, again and again: first
//! unmarked, then in `Observe`, then in `Exact`.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinHandle;
use trainjob_api::{TrainJob, conditions};

use crate::bench::figures::Times;
use crate::bench::progress::Progress;
use crate::testenv::accounting::{Accounting, install_accounting, start_operator};
use crate::testenv::apply::apply;
use crate::testenv::cluster::Options;
use crate::testenv::fixtures::status::conditions_of;
use crate::testenv::fixtures::{COMPLETES_AFTER, World, runtime};
use crate::testenv::until::until_ok;

/// Pods of a job.
const PODS: usize = 8;
/// How often each job is restarted.
const RESTARTS: usize = 10;
/// How long all restarts may take.
const WITHIN: Duration = Duration::from_mins(10);
/// The runtime, and the prefix of the jobs.
const FAILS: &str = "fails-often";
/// In which order.
const MODES: [&str; 3] = ["Off", "Observe", "Exact"];

/// Milliseconds from the first failure of an attempt to the first Pod of the next one.
pub(super) struct Restarts {
    pub(super) off: Times,
    pub(super) observe: Times,
    pub(super) exact: Times,
    /// Restarts that did not come.
    pub(super) missed: usize,
}

/// Restarts of so many jobs in each mode.
pub(super) async fn run(jobs: usize, fsync: bool, progress: &Progress) -> Result<Restarts> {
    progress.step("starting a control plane for restarts", 0);
    let options = Options { fsync, ..Options::default() };
    let world = Box::pin(World::without_operator(options)).await?;
    install_accounting(&world.cluster).await?;
    let fails = json!({COMPLETES_AFTER: "1s", "e2e.trainjob.dev/outcome": "fail"});
    let mut runtime = runtime(FAILS, &fails, 1, None);
    let job_set = runtime.pointer_mut("/spec/template/spec").and_then(|it| it.as_object_mut());
    let policy = json!({"maxRestarts": RESTARTS});
    job_set.context("no JobSet")?.insert("failurePolicy".to_owned(), policy);
    apply(&world.cluster.client().await?, "default", vec![runtime]).await?;
    let program = Accounting::start(&world.cluster, "{}").await?;
    program.leads().await?;
    let (mut all, mut missed) = (Vec::new(), 0);
    for mode in MODES {
        if mode == "Off" {
            world.start_operator().await?;
        } else {
            start_operator(&world, mode).await?;
        }
        let waited = restart_all(&world, mode, jobs, progress).await?;
        missed += (jobs * RESTARTS).abs_diff(waited.len());
        all.push(Times::of(waited));
    }
    let [off, observe, exact] = all.try_into().ok().context("not as many modes")?;
    Ok(Restarts { off, observe, exact, missed })
}

/// Restarts of so many jobs. How long each took, in milliseconds.
async fn restart_all(
    world: &World,
    mode: &str,
    jobs: usize,
    progress: &Progress,
) -> Result<Vec<f64>> {
    progress.step(format!("jobs fail and are restarted, accounting is {mode}"), jobs * RESTARTS);
    let tenant = world.tenant(&mode.to_lowercase()).await?;
    let watch = Watch::start(&tenant.client, &tenant.namespace).await?;
    for number in 0..jobs {
        let spec = json!({"trainer": {"numNodes": PODS}});
        tenant.create(&format!("job-{number}"), FAILS, spec).await?;
    }
    until_ok("all have failed for good", WITHIN, || async {
        progress.at(watch.waited().len());
        let all = tenant.jobs.list(&ListParams::default()).await?;
        let failed = |job: &&TrainJob| {
            conditions::find_true(conditions_of(job), conditions::FAILED).is_some()
        };
        let failed = all.iter().filter(failed).count();
        ensure!(failed == jobs, "{failed} have");
        Ok(())
    })
    .await?;
    Ok(watch.waited())
}

/// When the first Pod of an attempt was seen, and when its first failure was.
#[derive(Debug, Clone, Copy, Default)]
struct Attempt {
    began: Option<Instant>,
    failed: Option<Instant>,
}

/// Attempts by job and number.
type Attempts = BTreeMap<(String, usize), Attempt>;

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
                    if let WatchEvent::Added(pod) | WatchEvent::Modified(pod) = event {
                        version = pod.resource_version().unwrap_or(version);
                        note(&mut noted.lock().unwrap_or_else(PoisonError::into_inner), &pod);
                    }
                }
            }
        });
        Ok(Self { attempts, task })
    }

    /// How long each restart took that has come.
    fn waited(&self) -> Vec<f64> {
        let attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let restarts = attempts.iter().filter_map(|((job, number), attempt)| {
            let next = attempts.get(&(job.clone(), number + 1))?;
            Some(next.began?.duration_since(attempt.failed?).as_secs_f64() * 1e3)
        });
        restarts.collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn note(attempts: &mut Attempts, pod: &Pod) {
    let label = |name: &str| pod.labels().get(&format!("jobset.sigs.k8s.io/{name}"));
    let (Some(job), Some(number)) = (label("jobset-name"), label("restart-attempt")) else {
        return;
    };
    let Ok(number) = number.parse() else { return };
    let attempt = attempts.entry((job.clone(), number)).or_default();
    let now = Instant::now();
    attempt.began.get_or_insert(now);
    if pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Failed") {
        attempt.failed.get_or_insert(now);
    }
}
