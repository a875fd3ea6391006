//! `trainjob-accounting sweep`: releases Pods that wait for a program that does not act (`docs/accounting.md`, AH7).
//!
//! It watches marked Pods and the Lease of the program, and counts nothing. While the Lease changes it does nothing. Once
//! the Lease has stood still for a minute in which the API server could be asked, a Pod is released that has been ended and
//! deleted for `--after`. The log has what it used.

mod candidates;
mod gauges;

use std::{
    convert::Infallible,
    future::pending,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{Api, Client, runtime::watcher::Event};
use tokio::{sync::watch, task::JoinSet, time::sleep};
use trainjob_accounting_core::{
    clock::Now,
    job::{Job, Suspension},
};
use trainjob_api::lifecycle::v1alpha1::TRAIN_JOB_UID_LABEL;
use trainjob_core::server_time::Precision;
use trainjob_engine::{
    clock::{self, Clock, monotonic},
    error::RequestError,
    heartbeat::Heartbeat,
    lease::KIND,
    running::{RunError, never},
    watch::{Span, Subject, follow_labelled},
};
use trainjob_process::{
    OwnFlag, Servers, Shown,
    client::Clients,
    config::{ConfigError, Flags, Settings},
    health::Readiness,
    tls,
};

use self::candidates::{Candidates, Due};
use crate::{
    config::Config,
    fair::{self, Cut},
    metrics::{LostReason, Metrics},
    news,
    pod_view::{ListedPod, stored},
    requests::{Annotation, release},
};

/// The name of the command.
pub const COMMAND: &str = "sweep";
/// The flags that only it takes.
pub const FLAGS: &[OwnFlag] = &[OwnFlag {
    name: AFTER.0,
    value: Some("DURATION"),
    help: "How long a Pod has to have waited [default: 2m]",
}];

const AFTER: (&str, &str) = ("after", "--after");
const DEFAULT: Duration = Duration::from_mins(2);
const BOUNDS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(1);

/// How often it is looked whether a Pod is due.
const LOOK: Duration = Duration::from_secs(1);
/// What readiness waits for.
const LISTED: &str = "Pods";

/// What the sweeper uses.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepConfig {
    program: Config,
    after: Duration,
}

impl Settings for SweepConfig {
    fn load(flags: &Flags) -> Result<Self, ConfigError> {
        let after = flags.duration(AFTER, DEFAULT, &BOUNDS)?;
        Ok(Self { program: Config::load(flags)?, after })
    }

    fn warnings(&self) -> &[String] {
        self.program.warnings()
    }

    fn clock_jump_pause(&self) -> Duration {
        self.program.clock_jump_pause()
    }
}

/// Sweeps until `stop` becomes true.
///
/// # Errors
///
/// See [`RunError`].
pub async fn run(
    config: SweepConfig,
    clients: Clients,
    mut stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let readiness = Readiness::awaiting([LISTED]);
    let (drained, until_drained) = watch::channel(false);
    let metrics = Metrics::new(config.program.namespaces_shown)?;
    metrics.show(&clients)?;
    let shown = Shown {
        metrics: metrics.registry(),
        certificates: tls::self_signed(env!("CARGO_PKG_NAME"))?,
        client: &clients.work,
    };
    let served = config.program.served();
    let servers = Servers::start(served, &readiness, shown, &until_drained).await;
    let mut servers = servers.map_err(RunError::Server)?;
    let sweeper = Arc::new(Sweeper {
        candidates: Mutex::default(),
        heartbeat: Heartbeat::default(),
        after: config.after,
        client: clients.work.clone(),
        clock: Clock::new(Arc::clone(&clients.server_time)),
        metrics,
        readiness: readiness.clone(),
        unreachable: AtomicBool::new(false),
    });
    gauges::show(&sweeper)?;
    let mut tasks = tasks(&config, &clients, &sweeper);
    let ended = tokio::select! {
        _ = stop.wait_for(|stop| *stop) => Ok(()),
        ended = tasks.join_next() => {
            Err(RunError::TaskEnded(ended.and_then(Result::ok).unwrap_or("a task")))
        }
        Some(ended) = servers.ended() => ended.map_err(RunError::Server),
    };
    readiness.shutting_down();
    tasks.shutdown().await;
    drained.send_replace(true);
    while let Some(ended) = servers.ended().await {
        ended.map_err(RunError::Server)?;
    }
    ended
}

fn tasks(config: &SweepConfig, clients: &Clients, sweeper: &Arc<Sweeper>) -> JoinSet<&'static str> {
    let mut tasks = JoinSet::new();
    let (watching, client) = (Arc::clone(sweeper), clients.watch.clone());
    tasks.spawn(async move { never(watching.watch_pods(client).await) });
    let (namespace, name) = config.program.lease.clone();
    let namespace = namespace.unwrap_or_else(|| clients.namespace.clone());
    let leases: Api<Lease> = Api::namespaced(clients.watch.clone(), &namespace);
    let listening = Arc::clone(sweeper);
    tasks.spawn(async move {
        let restarts = listening.metrics.restarts(KIND);
        listening.heartbeat.watch(leases, &name, &listening.unreachable, &restarts).await;
        "the watch of the Lease"
    });
    let sweeping = Arc::clone(sweeper);
    tasks.spawn(async move { never(sweeping.sweep().await) });
    let (client, server_time) = (clients.work.clone(), Arc::clone(&clients.server_time));
    tasks.spawn(async move {
        clock::keep(client, server_time, || Precision::Promised).await;
        "the clock"
    });
    tasks
}

/// What releases Pods while no program acts.
struct Sweeper {
    candidates: Mutex<Candidates>,
    heartbeat: Heartbeat,
    after: Duration,
    client: Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    unreachable: AtomicBool,
}

impl Sweeper {
    fn candidates(&self) -> MutexGuard<'_, Candidates> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.candidates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Now {
        Now { server: self.clock.likely().into(), clock: monotonic() }
    }

    async fn watch_pods(&self, client: Client) -> Infallible {
        let restarts = self.metrics.restarts("Pod");
        let install = Some("it is part of Kubernetes");
        let subject = Subject { kind: "Pod", install, span: Span::Short, restarts: &restarts };
        let pods: Api<ListedPod> = Api::all(client);
        follow_labelled(pods, TRAIN_JOB_UID_LABEL, subject, &self.unreachable, |event| {
            let now = self.now();
            match event {
                Ok(Event::Init) => self.candidates().list_begins(),
                Ok(Event::InitApply(pod) | Event::Apply(pod)) => {
                    self.tell(self.candidates().saw(&stored(pod), now));
                }
                Ok(Event::Delete(pod)) => self.tell(self.candidates().gone(&stored(pod))),
                Ok(Event::InitDone) => {
                    self.tell(self.candidates().list_ends());
                    self.readiness.set(LISTED, true);
                }
                Err(_) => {}
            }
        })
        .await;
        pending().await
    }

    async fn sweep(&self) -> Infallible {
        loop {
            let now = self.now();
            let still = self.heartbeat.still_since();
            let due = self.candidates().due(now, still, self.after);
            let release = |due| self.release(due);
            let round = fair::round(due, |due| &due.namespace, release, Cut::Any).await;
            if round.is_cut {
                tracing::debug!("some Pods are left to the next round");
            }
            sleep(LOOK).await;
        }
    }

    async fn release(&self, due: Due) {
        let Due { namespace, tracked } = due;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let (name, uid) = (&*tracked.pod.name, &*tracked.pod.uid);
        // A round may be over before the answer comes, and that may be lost.
        let Some(asked_before) = self.candidates().asked(uid) else { return };
        match release(&pods, name, uid, Annotation::Unset).await {
            Ok(_) => self.tell(self.candidates().released(uid)),
            Err(error) if error.says_absent() => {
                let released = self.candidates().released(uid);
                self.tell(released.filter(|_| asked_before));
            }
            Err(error) => {
                tracing::warn!(namespace, pod = name, uid, %error, "cannot release a Pod");
                // Behind any other answer, and behind a request before, it may have been granted.
                let is_refused = matches!(&error, RequestError::Refused(status) if status.code < 500)
                    && !asked_before;
                self.candidates().failed(uid, is_refused, monotonic());
            }
        }
    }

    /// What is not counted is logged whole: that line is its receipt.
    fn tell(&self, released: impl IntoIterator<Item = Due>) {
        released.into_iter().for_each(|pod| self.tell_of(&pod));
    }

    fn tell_of(&self, Due { namespace, tracked }: &Due) {
        // What stopped it may have been its suspension or its deadline; the TrainJob is not asked.
        let job = Job::Running { suspension: Suspension::Never };
        let share = news::share(tracked, &job, self.now().server);
        let template = &tracked.pod.template;
        tracing::warn!(
            namespace, job = &*template.job_name, job_uid = &*template.job_uid,
            pod = share.pod, uid = share.uid, verdict = ?share.verdict, seconds = ?share.seconds,
            "a Pod is not counted: no accounting program acts, and somebody waits for the Pod to go"
        );
        self.metrics.lost(LostReason::Swept);
    }
}
