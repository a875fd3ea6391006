//! The wiring, and the order of starting and stopping.
//!
//! Starting: health is served at once, watches begin, and nothing is decided before every cache has
//! been filled. Stopping: readiness goes off, no new work is taken in, the work under way is finished,
//! then the servers end.

use std::{
    collections::HashSet,
    io,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use thiserror::Error;
use tokio::{
    sync::{Semaphore, watch},
    task::{JoinError, JoinSet},
};

use crate::{
    cache::{
        Cache,
        watch::{KINDS, Watcher},
    },
    client::Clients,
    config::Config,
    events,
    execute::Executor,
    health::{self, Readiness},
    limit::Limiter,
    queue::Queue,
    reconcile::Reconciler,
    survey,
};

/// How long work under way may take at the end. Less than the 30 seconds a Pod is given by default.
const DRAIN: Duration = Duration::from_secs(20);

/// Why the operator ended.
#[derive(Debug, Error)]
pub enum RunError {
    /// Health cannot be served.
    #[error("cannot serve health: {0}")]
    Health(#[source] io::Error),
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
    mut stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let readiness = Readiness::awaiting(KINDS);
    let (drained, until_drained) = watch::channel(false);
    let mut servers = serve_health(&config, &readiness, until_drained).await?;

    let limiter =
        config.rate_limit.map(|rate| Arc::new(Limiter::new(rate.per_second, rate.burst.get())));
    let (events, sender) =
        events::channel(clients.work.clone(), limiter.clone(), config.normal_events);
    let (cache, queue) = (Arc::new(Cache::default()), Arc::new(Queue::default()));
    let executor =
        Executor { client: clients.work.clone(), cache: Arc::clone(&cache), events, limiter };
    let reconciler = Arc::new(Reconciler::new(
        Arc::clone(&cache),
        Arc::clone(&queue),
        executor,
        config.settings,
    ));
    let (listed, all_listed) = watch::channel(HashSet::new());
    let watcher = watcher(&clients, &reconciler, readiness.clone(), listed);

    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        watcher.run().await;
        "the watches"
    });
    tasks.spawn(async move {
        sender.run().await;
        "the event sender"
    });
    let timers = Arc::clone(&reconciler);
    tasks.spawn(async move {
        timers.queue.run_timers(|key| timers.lane(key)).await;
        "the timers"
    });

    let work =
        work(&reconciler, &clients, &readiness, all_listed, config.concurrency.get(), stop.clone());
    let ended = tokio::select! {
        () = work => Ok(()),
        ended = tasks.join_next() => {
            let task = ended.and_then(Result::ok).unwrap_or("a task");
            Err(RunError::TaskEnded(task))
        }
        Some(served) = servers.join_next() => served_health(served),
    };
    if ended.is_ok() {
        // `work` returns only after this.
        let _ = stop.wait_for(|stop| *stop).await;
    }
    readiness.shutting_down();
    tasks.shutdown().await;
    drained.send_replace(true);
    while let Some(served) = servers.join_next().await {
        served_health(served)?;
    }
    ended
}

async fn serve_health(
    config: &Config,
    readiness: &Readiness,
    until: watch::Receiver<bool>,
) -> Result<JoinSet<io::Result<()>>, RunError> {
    let mut servers = JoinSet::new();
    if let Some(address) = config.health_address {
        let listener = health::listen(address).await.map_err(RunError::Health)?;
        let endpoints = config.health_endpoints.clone();
        servers.spawn(health::serve(listener, endpoints, readiness.clone(), until));
    }
    Ok(servers)
}

fn served_health(served: Result<io::Result<()>, JoinError>) -> Result<(), RunError> {
    served.map_err(io::Error::other).and_then(|served| served).map_err(RunError::Health)
}

fn watcher(
    clients: &Clients,
    reconciler: &Arc<Reconciler>,
    readiness: Readiness,
    listed: watch::Sender<HashSet<&'static str>>,
) -> Watcher {
    let waker = Arc::clone(reconciler);
    Watcher {
        client: clients.watch.clone(),
        cache: Arc::clone(&reconciler.cache),
        wake: Box::new(move |key, lane| {
            if let Some(lane) = lane.or_else(|| waker.lane(&key)) {
                waker.queue.add(key, lane);
            }
        }),
        readiness,
        listed,
        unreachable: AtomicBool::new(false),
    }
}

/// Works on keys, at most `concurrency` at a time, until `stop`; then finishes what is under way.
async fn work(
    reconciler: &Arc<Reconciler>,
    clients: &Clients,
    readiness: &Readiness,
    mut listed: watch::Receiver<HashSet<&'static str>>,
    concurrency: usize,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        _ = listed.wait_for(|kinds| kinds.len() == KINDS.len()) => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    tracing::info!("watching; working on TrainJobs");
    if let Err(error) = survey::pods(&clients.work, &reconciler.cache).await {
        tracing::warn!(%error, "cannot list Pods; each released job is looked at by itself");
    }
    let places = Arc::new(Semaphore::new(concurrency));
    let mut workers = JoinSet::new();
    loop {
        // The place is taken before the key: who is next is decided at the last moment.
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let (key, lane) = tokio::select! {
            next = async { reconciler.wait_out_throttling().await; reconciler.queue.next().await } => next,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let reconciler = Arc::clone(reconciler);
        workers.spawn(async move {
            let _place = place;
            reconciler.work(&key, lane).await;
            reconciler.queue.done(&key);
        });
        while workers.try_join_next().is_some() {}
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
