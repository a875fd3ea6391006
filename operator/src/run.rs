//! The wiring, and the order of starting and stopping.
//!
//! Starting: health is served at once, watches begin, and nothing is decided before every cache has
//! been filled and, where a leader is elected, this process leads. Until then it only watches. Stopping:
//! readiness starts failing, no new work is taken in, the work under way is finished, the Lease is released,
//! then the servers end. A process that has lost the leader election ends at once, with an error: what
//! it had under way is for its successor to decide anew.

use std::{
    collections::HashSet,
    convert::Infallible,
    future::pending,
    io,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use thiserror::Error;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};
use trainjob_api::constants::EVENT_REPORTER;
use trainjob_core::{
    facts::ObjectKey,
    priority::{Priority, QueuePosition},
};
use trainjob_engine::{
    clock::{self, Clock},
    events::{self, Sender},
    leader::LeaderGuard,
    lease::{self, Election, Watched},
    limit::Limiter,
    places::{Place, Places},
    queue::{Attempt, Next, Queue},
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
    cache::{Cache, watch::Watcher},
    events::Events,
    execute::Executor,
    initial_pods,
    kinds::Kind,
    legacy_finalizer::{self, Finder, Remover},
    metrics::{Metrics, gauges::Sources, work::End},
    reconcile::{Reconciler, Worked},
};

/// How long work under way may take at the end. Less than the 30 seconds a Pod is given by default.
const DRAIN: Duration = Duration::from_secs(20);

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
    let metrics = Metrics::new()?;
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
    let watcher = watcher(&clients, &reconciler, legacy, readiness.clone(), (listed, unreachable));

    let timers = timers(&reconciler).map_err(RunError::Timers)?;
    let queue = Arc::clone(&reconciler.queue);
    let time = clock::keep(clients.work.clone(), Arc::clone(&clients.server_time), move || {
        queue.precision()
    });
    let mut tasks = tasks(watcher, sender, remover, timers, time);

    let begun = async move {
        complete(all_listed).await;
        leader.granted().await;
    };
    let stopping = stop.clone();
    let work = work(&reconciler, &clients, &readiness, begun, stop);
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
) -> Result<(Arc<Reconciler>, Sender), RunError> {
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
    let cache = Arc::new(Cache::default());
    let sources = Sources {
        cache: Arc::clone(&cache),
        queue: Arc::clone(&queue),
        clock: clock.clone(),
        leader: leader.clone(),
        settings: config.settings,
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
    let reconciler = Reconciler::new(cache, queue, executor, metrics, config.settings);
    Ok((Arc::new(reconciler), sender))
}

/// Starts what never ends by itself; each says what it was.
fn tasks(
    watcher: Watcher,
    sender: Sender,
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
    Servers::start(config, readiness, shown, until).await.map_err(RunError::Server)
}

/// Takes part in the election, where there is one, once `ready`.
fn take_part(
    election: Option<LeaderElection>,
    clients: &Clients,
    watched: Watched,
    ready: impl Future<Output = ()> + Send + 'static,
) -> (Option<Election>, LeaderGuard) {
    match election {
        None => (None, LeaderGuard::always()),
        Some(settings) => {
            let (election, leader) = Election::begin(clients, settings, watched, ready);
            (Some(election), leader)
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

/// Starts the thread of the timers; waits for its end.
fn timers(reconciler: &Arc<Reconciler>) -> io::Result<impl Future<Output = ()> + use<>> {
    let (running, ended) = oneshot::channel::<Infallible>();
    let reconciler = Arc::clone(reconciler);
    std::thread::Builder::new().name("timers".to_owned()).spawn(move || {
        let _running = running;
        reconciler.queue.run_timers(|key| reconciler.position(key));
    })?;
    Ok(async {
        // Nothing is ever sent: the other end is dropped when the thread ends, however it does.
        let _ = ended.await;
    })
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
        wake: Box::new(move |key| {
            // A job that is gone is looked at too, to forget what belonged to it.
            let position = waker.position(&key).unwrap_or(QueuePosition::LIVE);
            waker.queue.add(key, position);
        }),
        legacy,
        readiness,
        listed,
        tried: watch::Sender::default(),
        unreachable,
        metrics: Arc::clone(&reconciler.metrics),
    }
}

/// Works on keys from `begun` on until `stop`; then finishes what is under way.
async fn work(
    reconciler: &Arc<Reconciler>,
    clients: &Clients,
    readiness: &Readiness,
    begun: impl Future<Output = ()>,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        () = begun => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    tracing::info!("watching; working on TrainJobs");
    tokio::select! {
        () = initial_pods::pods(&clients.work, &reconciler.cache) => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    reconciler.take_over();
    let mut workers = JoinSet::new();
    loop {
        let next = tokio::select! {
            next = reconciler.queue.next() => next,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        workers.spawn(Turn::new(Arc::clone(reconciler), next).take());
        while let Some(ended) = workers.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "a pass broke off; its job is tried again");
            }
        }
    }
    readiness.shutting_down();
    tracing::info!(under_way = workers.len(), "stopping");
    let drain = async { while workers.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drain).await.is_err() {
        tracing::warn!(
            "some work under way did not end in time; it is repeated after the next start"
        );
    }
}

/// One pass over one key. However it ends, its place and its key are given back.
struct Turn {
    reconciler: Arc<Reconciler>,
    key: ObjectKey,
    priority: Priority,
    attempt: Attempt,
    place: Option<Place>,
    begun: Instant,
    worked: Worked,
}

impl Turn {
    fn new(reconciler: Arc<Reconciler>, next: Next) -> Self {
        let Next { key, priority, waited, attempt, place } = next;
        reconciler.metrics.work.begun(priority, waited);
        let (begun, worked) = (Instant::now(), Worked::Ended(End::BrokenOff));
        Self { reconciler, key, priority, attempt, place: Some(place), begun, worked }
    }

    async fn take(mut self) {
        if let Some(place) = &self.place {
            self.worked = self.reconciler.work(&self.key, self.priority, place).await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // The place first: the queue wakes who looks for one.
        self.place = None;
        let (key, priority) = (&self.key, self.priority);
        self.reconciler.metrics.work.ended(priority, self.worked.into(), self.begun.elapsed());
        match self.worked {
            _ if std::thread::panicking() => self.reconciler.broken_off(key, priority),
            Worked::Ended(_) => self.reconciler.queue.done(key),
            Worked::WaitsFor(operation) => self.reconciler.wait_for(key, self.attempt, operation),
        }
    }
}
