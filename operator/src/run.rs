//! The wiring, and the order of starting and stopping.
//!
//! Starting: health is served at once, watches begin, and nothing is decided before this process leads, where a leader is
//! elected. Until everything has been listed, finished TrainJobs whose TTL is due are deleted and nothing else is done
//! (`docs/decisions.md`, 43). Stopping:
//! readiness starts failing, no new work is taken in, the work under way is finished, the Lease is released,
//! then the servers end. A process that has lost the leader election ends at once, with an error: what
//! it had under way is for its successor to decide anew.

use std::{
    collections::HashSet,
    future::pending,
    io,
    sync::{Arc, atomic::AtomicBool},
};

use thiserror::Error;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};
use trainjob_api::constants::EVENT_REPORTER;
use trainjob_core::{
    mark::Mode,
    priority::{Priority, QueuePosition},
};
use trainjob_engine::{
    clock::{self, Clock},
    controller::{self, Controller},
    events::{self, Sender},
    leader::LeaderGuard,
    lease::{self, Election, Unready, Watched},
    places::Places,
    shares::FEWEST_PLACES,
};
use trainjob_process::{
    Servers, Shown,
    client::Clients,
    config::{Config, LeaderElection},
    health::Readiness,
    tls::{self, SelfSignedError},
};

use crate::{
    accounting::Counting,
    cache::{Cache, watch::Watcher},
    events::Events,
    execute::Executor,
    initial_pods::Awaiting,
    kinds::Kind,
    legacy_finalizer::{self, Finder, Remover},
    metrics::{Metrics, gauges::Sources},
    queue::{Limiter, Queue},
    reconcile::Reconciler,
};

/// Why the operator ended.
#[derive(Debug, Error)]
pub enum RunError {
    /// Health or metrics cannot be served.
    #[error("cannot serve health or metrics: {0}")]
    Server(#[source] io::Error),
    /// There is no thread for the timers.
    #[error("cannot start a thread for the timers: {0}")]
    Timers(#[source] io::Error),
    /// There are no metrics.
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// There is no certificate for them.
    #[error(transparent)]
    Certificate(#[from] SelfSignedError),
    /// It has lost the leader election.
    #[error("leader election lost: {0}")]
    LeadershipLost(String),
    /// A task that never ends has ended.
    #[error("{0} ended unexpectedly")]
    TaskEnded(&'static str),
}

/// Runs the operator until `stop` becomes true.
///
/// # Errors
///
/// See [`RunError`].
pub async fn run(
    config: Config,
    clients: Clients,
    stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let readiness = Readiness::awaiting(Kind::ALL.map(Kind::name));
    let (drained, until_drained) = watch::channel(false);
    let metrics = Metrics::new(config.job_namespaces)?;
    let mut servers = serve(&config, &clients, &readiness, &metrics, &until_drained).await?;

    let unreachable = Arc::new(AtomicBool::new(false));
    let (listed, all_listed) = watch::channel(HashSet::new());
    let of_lease = Watched {
        unreachable: Arc::clone(&unreachable),
        restarts: metrics.work.restarts(lease::KIND).clone(),
    };
    let ready = complete(all_listed.clone());
    let (mut election, leader) =
        take_part(config.leader_election.clone(), &clients, of_lease, ready);

    let (reconciler, sender) = reconciler(&config, &clients, &leader, metrics)?;
    let (legacy, remover) = legacy_finalizer::channel(clients.work.clone(), leader.clone());
    let of_counting = counting(&config, &clients, &reconciler, Arc::clone(&unreachable));
    let watcher = watcher(&clients, &reconciler, legacy, readiness.clone(), (listed, unreachable));

    let timers = controller::timers(&reconciler).map_err(RunError::Timers)?;
    let queue = Arc::clone(&reconciler.queue);
    let time = clock::keep(clients.work.clone(), Arc::clone(&clients.server_time), move || {
        queue.precision()
    });
    let mut tasks = tasks(watcher, sender, remover, timers, time);
    tasks.spawn(async move {
        of_counting.await;
        "the watch of the Lease of trainjob-accounting"
    });

    let stopping = stop.clone();
    let (leads, listed) = (leader.granted(), complete(all_listed));
    let work = work(&reconciler, &clients, &readiness, (leads, listed), stop);
    let ended = tokio::select! {
        () = work => Ok(()),
        why = lost(&mut election) => Err(RunError::LeadershipLost(why)),
        ended = tasks.join_next() => {
            let task = ended.and_then(Result::ok).unwrap_or("a task");
            Err(RunError::TaskEnded(task))
        }
        Some(ended) = servers.ended() => ended.map_err(RunError::Server),
    };
    readiness.shutting_down();
    reconciler.queue.close();
    tasks.shutdown().await;
    // Nobody is left who could write.
    if let Some(election) = election {
        election.release().await;
    }
    drained.send_replace(true);
    while let Some(ended) = servers.ended().await {
        ended.map_err(RunError::Server)?;
    }
    match ended {
        Err(RunError::LeadershipLost(why)) if *stopping.borrow() => {
            tracing::warn!(why, "leader election lost while stopping");
            Ok(())
        }
        ended => ended,
    }
}

/// The reconciler with all that it uses, and what sends its events.
fn reconciler(
    config: &Config,
    clients: &Clients,
    leader: &LeaderGuard,
    metrics: Arc<Metrics>,
) -> Result<(Arc<Reconciler>, Sender<Priority>), RunError> {
    let clock = Clock::new(Arc::clone(&clients.server_time));
    let limit = config.rate_limit.as_ref();
    let limiter = limit.map(|rate| Arc::new(Limiter::new(rate.per_second, rate.burst.get())));
    let (recorder, sender) = events::channel(
        EVENT_REPORTER,
        clients.work.clone(),
        clock.clone(),
        limiter.clone(),
        leader.clone(),
        config.normal_events,
        metrics.work.events_dropped.clone(),
    );
    let places = config.concurrency.get().max(FEWEST_PLACES);
    metrics.work.set_concurrency(places);
    let queue = Arc::new(Queue::standby(Places::new(places), clock.clone()));
    let cache = Arc::new(Cache::new(config.manifest_memory));
    let counting = Arc::new(Counting::new(config.accounting.mode));
    let sources = Sources {
        cache: Arc::clone(&cache),
        queue: Arc::clone(&queue),
        clock: clock.clone(),
        leader: leader.clone(),
        settings: config.settings,
        counting: Arc::clone(&counting),
        nearest_deadlines: config.nearest_deadlines,
    };
    metrics.show(clients, sources)?;
    let executor = Executor {
        client: clients.work.clone(),
        cache: Arc::clone(&cache),
        events: Events { recorder, client: clients.work.clone() },
        limiter,
        leader: leader.clone(),
        clock,
    };
    let reconciler = Reconciler::new(cache, queue, executor, metrics, config.settings, counting);
    Ok((Arc::new(reconciler), sender))
}

/// Starts what never ends by itself; each says what it was.
fn tasks(
    watcher: Watcher,
    sender: Sender<Priority>,
    remover: Remover,
    timers: impl Future<Output = ()> + Send + 'static,
    time: impl Future<Output = ()> + Send + 'static,
) -> JoinSet<&'static str> {
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        Box::pin(watcher.run()).await;
        "the watches"
    });
    tasks.spawn(async move {
        sender.run().await;
        "the event sender"
    });
    tasks.spawn(async move {
        remover.run().await;
        "the remover of legacy finalizers"
    });
    tasks.spawn(async move {
        timers.await;
        "the timers"
    });
    tasks.spawn(async move {
        time.await;
        "the clock"
    });
    tasks
}

/// Serves health and metrics.
async fn serve(
    config: &Config,
    clients: &Clients,
    readiness: &Readiness,
    metrics: &Metrics,
    until: &watch::Receiver<bool>,
) -> Result<Servers, RunError> {
    let shown = Shown {
        metrics: metrics.registry(),
        certificates: tls::self_signed(env!("CARGO_PKG_NAME"))?,
        client: &clients.work,
    };
    Servers::start(config.served(), readiness, shown, until).await.map_err(RunError::Server)
}

/// Takes part in the election, where there is one.
fn take_part(
    election: Option<LeaderElection>,
    clients: &Clients,
    watched: Watched,
    ready: impl Future<Output = ()> + Send + 'static,
) -> (Option<Election>, LeaderGuard) {
    match election {
        None => (None, LeaderGuard::always()),
        Some(settings) => {
            let part = (Unready::TakesIt, ready);
            let (election, leader) = Election::begin(clients, settings, watched, part);
            (Some(election), leader)
        }
    }
}

/// Watches the program that counts Pods, if Pods are marked for it.
fn counting(
    config: &Config,
    clients: &Clients,
    reconciler: &Reconciler,
    unreachable: Arc<AtomicBool>,
) -> impl Future<Output = ()> + use<> {
    let (lease, counting) = (config.accounting.clone(), Arc::clone(&reconciler.counting));
    let (client, namespace) = (clients.watch.clone(), clients.namespace.clone());
    let restarts = reconciler.metrics.work.restarts(lease::KIND).clone();
    async move {
        match lease.mode {
            Mode::Off => pending().await,
            Mode::Observe | Mode::Exact => {
                counting.watch(client, lease, namespace, unreachable, restarts).await;
            }
        }
    }
}

/// Waits until every kind has been listed.
async fn complete(mut listed: watch::Receiver<HashSet<&'static str>>) {
    if listed.wait_for(|kinds| kinds.len() == Kind::ALL.len()).await.is_err() {
        // The watches have ended, and so does the process.
        pending::<()>().await;
    }
}

/// Waits until this process has led and does not any more; says why.
async fn lost(election: &mut Option<Election>) -> String {
    match election {
        Some(election) => election.lost().await,
        None => pending().await,
    }
}

fn watcher(
    clients: &Clients,
    reconciler: &Arc<Reconciler>,
    legacy: Finder,
    readiness: Readiness,
    (listed, unreachable): (watch::Sender<HashSet<&'static str>>, Arc<AtomicBool>),
) -> Watcher {
    let waker = Arc::clone(reconciler);
    Watcher {
        client: clients.watch.clone(),
        cache: Arc::clone(&reconciler.cache),
        wake: Box::new(move |key| waker.wake(key, QueuePosition::LIVE)),
        legacy,
        readiness,
        listed,
        begun: watch::Sender::default(),
        unreachable,
        metrics: Arc::clone(&reconciler.metrics),
    }
}

/// Works on keys until `stop` once this process leads, on all of them once everything is listed; then finishes what is under way.
async fn work(
    reconciler: &Arc<Reconciler>,
    clients: &Clients,
    readiness: &Readiness,
    (leads, listed): (impl Future<Output = ()>, impl Future<Output = ()>),
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        () = leads => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    let cache = &reconciler.cache;
    let (sender, awaiting) = oneshot::channel();
    let listed = async {
        listed.await;
        tracing::info!("watching; working on TrainJobs");
        cache.take_over();
        let now = reconciler.clock.likely().into();
        // Who waits for it has not ended before this.
        let _ = sender.send(Awaiting::begin(cache, reconciler.queue.noted(), now));
    };
    let wake = |key| reconciler.wake(key, QueuePosition::LIVE);
    let pods = async {
        if let Ok(waiting) = awaiting.await {
            waiting.end(&clients.work, cache, wake).await;
        }
        pending::<()>().await;
    };
    let stopping = || readiness.shutting_down();
    tokio::select! {
        () = controller::work_once_listed(reconciler, listed, stop, stopping) => {}
        () = pods => {}
    }
}
