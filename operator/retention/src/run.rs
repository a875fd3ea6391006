//! The wiring, and the order of starting and stopping.
//!
//! As in the operator: health is served at once, watches begin, and nothing is deleted before everything is known and,
//! where a leader is elected, this process leads. A process that has lost the leader election ends at once, with an error.

use std::{
    future::pending,
    io,
    sync::{Arc, atomic::AtomicBool},
};

use thiserror::Error;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use trainjob_engine::{
    clock::{self, Clock},
    controller::{self, Controller},
    events::{self, Sender},
    leader::LeaderGuard,
    lease::{self, Election, Watched},
    places::Places,
    shares::FEWEST_PLACES,
};
use trainjob_process::{
    Servers, Shown,
    client::Clients,
    config::Rate,
    health::Readiness,
    tls::{self, SelfSignedError},
};
use trainjob_retention_core::stored::PolicyKind;

use crate::{
    cluster_state::ClusterState,
    config::Config,
    feed::{Feed, LISTS, PolicySeen},
    gauges,
    key::{Priority, TargetId},
    metrics::Metrics,
    remover::{Parts, Queue, Remover},
    status::{OwnWrites, StatusWriter},
};

/// Who tells events.
const REPORTER: &str = "trainjob-retention";
/// What readiness waits for.
const LISTED: &str = "policies and namespaces";
/// The limit of Normal events, as the operator's: so many a second, and so many at once.
const NORMAL_EVENTS: (f64, u32) = (5.0, 50);

/// Why the program ended.
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

/// Runs the retention engine until `stop` becomes true.
///
/// # Errors
///
/// See [`RunError`].
pub async fn run(
    config: Config,
    clients: Clients,
    stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let readiness = Readiness::awaiting([LISTED]);
    let (drained, until_drained) = watch::channel(false);
    let metrics = Metrics::new()?;
    metrics.show(&clients)?;
    let shown = Shown {
        metrics: metrics.registry(),
        certificates: tls::self_signed(env!("CARGO_PKG_NAME"))?,
        client: &clients.work,
    };
    let servers = Servers::start(config.served(), &readiness, shown, &until_drained).await;
    let mut servers = servers.map_err(RunError::Server)?;

    let (listed, all_listed) = watch::channel(0);
    let (mut election, leader) =
        take_part(&config, &clients, &metrics, complete(all_listed.clone()));
    let (remover, sender) = remover(&config, &clients, &leader, &metrics);
    gauges::show(&remover, Arc::clone(&clients.server_time))?;
    let timers = controller::timers(&remover).map_err(RunError::Timers)?;
    let mut tasks = tasks(&config, &clients, &remover, sender, listed);
    tasks.spawn(async move {
        timers.await;
        "the timers"
    });

    let begun = async {
        complete(all_listed).await;
        readiness.set(LISTED, true);
        leader.granted().await;
    };
    let stopping = stop.clone();
    let ended = tokio::select! {
        () = work(&remover, &readiness, begun, stop) => Ok(()),
        why = lost(&mut election) => Err(RunError::LeadershipLost(why)),
        ended = tasks.join_next() => {
            let task = ended.and_then(Result::ok).unwrap_or("a task");
            Err(RunError::TaskEnded(task))
        }
        Some(ended) = servers.ended() => ended.map_err(RunError::Server),
    };
    readiness.shutting_down();
    remover.queue().close();
    tasks.shutdown().await;
    // Nobody is left who could write.
    if let Some(election) = election {
        election.release().await;
    }
    drained.send_replace(true);
    while let Some(ended) = servers.ended().await {
        ended.map_err(RunError::Server)?;
    }
    unless_stopping(ended, *stopping.borrow())
}

/// To lose the election while stopping is no error.
fn unless_stopping(ended: Result<(), RunError>, is_stopping: bool) -> Result<(), RunError> {
    match ended {
        Err(RunError::LeadershipLost(why)) if is_stopping => {
            tracing::warn!(why, "leader election lost while stopping");
            Ok(())
        }
        ended => ended,
    }
}

/// The remover with all that it uses, and what sends its events.
fn remover(
    config: &Config,
    clients: &Clients,
    leader: &LeaderGuard,
    metrics: &Arc<Metrics>,
) -> (Arc<Remover>, Sender<Priority>) {
    let clock = Clock::new(Arc::clone(&clients.server_time));
    let (per_second, burst) = NORMAL_EVENTS;
    let normal = burst.try_into().ok().map(|burst| Rate { per_second, burst });
    let (events, sender) = events::channel(
        REPORTER,
        clients.work.clone(),
        clock.clone(),
        None,
        leader.clone(),
        normal,
        metrics.events_dropped.clone(),
    );
    let mut excluded = config.excluded_namespaces.clone();
    excluded.insert(clients.namespace.as_str().into());
    let places = Places::new(config.concurrency.max(FEWEST_PLACES));
    let mut state = ClusterState::new(&config.targets, excluded, config.deletes_per_second);
    // Until work begins, what an evaluation would queue is not taken in.
    state.stand_by();
    let remover = Remover::new(Parts {
        state,
        targets: config.targets.clone(),
        queue: Queue::standby(places, clock.clone()),
        clock,
        client: clients.work.clone(),
        leader: leader.clone(),
        events,
        metrics: Arc::clone(metrics),
    });
    (Arc::new(remover), sender)
}

/// Starts what never ends by itself; each says what it was.
fn tasks(
    config: &Config,
    clients: &Clients,
    remover: &Arc<Remover>,
    sender: Sender<Priority>,
    listed: watch::Sender<u8>,
) -> JoinSet<&'static str> {
    let mut tasks = JoinSet::new();
    let (policies, seen): (_, mpsc::UnboundedReceiver<PolicySeen>) = mpsc::unbounded_channel();
    // Its watches are silent for longer than those that `clients.watch` is for.
    let client = clients.work.clone();
    let own_writes = Arc::new(OwnWrites::default());
    let (written, writing) = (Arc::clone(&own_writes), Arc::clone(remover));
    let writer = StatusWriter::new(writing, clients.work.clone(), seen, written);
    tasks.spawn(async move { never(writer.write().await) });
    let feed = Feed { remover: Arc::clone(remover), client, policies, own_writes, listed };
    let feed = Arc::new(feed);
    for kind in [PolicyKind::Namespaced, PolicyKind::Cluster] {
        let feed = Arc::clone(&feed);
        tasks.spawn(async move { never(feed.policies(kind).await) });
    }
    for index in 0..config.targets.len() {
        let feed = Arc::clone(&feed);
        tasks.spawn(async move { never(feed.target(TargetId(index)).await) });
    }
    tasks.spawn(async move { never(feed.namespaces().await) });
    let evaluating = Arc::clone(remover);
    tasks.spawn(async move { never(evaluating.evaluate().await) });
    let pacing = Arc::clone(remover);
    tasks.spawn(async move { never(pacing.keep_rates().await) });
    let asking = Arc::clone(remover);
    tasks.spawn(async move { never(asking.ask_rights().await) });
    let listing = Arc::clone(remover);
    tasks.spawn(async move { never(listing.list_pods().await) });
    tasks.spawn(async move {
        sender.run().await;
        "the event sender"
    });
    let (queue, client) = (Arc::clone(remover), clients.work.clone());
    let server_time = Arc::clone(&clients.server_time);
    tasks.spawn(async move {
        clock::keep(client, server_time, || queue.queue().precision()).await;
        "the clock"
    });
    tasks
}

/// What never ends does not say what it was.
const fn never(infallible: std::convert::Infallible) -> &'static str {
    match infallible {}
}

/// Takes part in the election, where there is one, once `ready`.
fn take_part(
    config: &Config,
    clients: &Clients,
    metrics: &Metrics,
    ready: impl Future<Output = ()> + Send + 'static,
) -> (Option<Election>, LeaderGuard) {
    match config.leader_election.clone() {
        None => (None, LeaderGuard::always()),
        Some(settings) => {
            let watched = Watched {
                unreachable: Arc::new(AtomicBool::new(false)),
                restarts: metrics.restarts(lease::KIND),
            };
            let (election, leader) = Election::begin(clients, settings, watched, ready);
            (Some(election), leader)
        }
    }
}

/// Waits until policies and namespaces have been listed.
async fn complete(mut listed: watch::Receiver<u8>) {
    if listed.wait_for(|lists| *lists >= LISTS).await.is_err() {
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

/// Works from `begun` on until `stop`; then finishes what is under way.
async fn work(
    remover: &Arc<Remover>,
    readiness: &Readiness,
    begun: impl Future<Output = ()>,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        () = begun => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    tracing::info!("watching; deleting what policies say");
    controller::work(remover, stop, || readiness.shutting_down()).await;
}
