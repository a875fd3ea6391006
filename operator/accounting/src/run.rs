//! The wiring, and the order of starting and stopping.
//!
//! As in the operator: health is served at once, watches begin, and nothing is written before everything is known and,
//! where a leader is elected, this process leads. A process that has lost the leader election ends at once, with an error.

use std::{
    future::pending,
    io,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use thiserror::Error;
use tokio::{sync::watch, task::JoinSet};
use trainjob_engine::{
    clock::{self, Clock},
    controller,
    events::{self, Sender},
    leader::LeaderGuard,
    lease::{self, Election, Watched},
    places::Places,
    shares::FEWEST_PLACES,
};
use trainjob_process::{
    Servers, Shown,
    client::Clients,
    health::Readiness,
    tls::{self, SelfSignedError},
};

use crate::{
    accountant::{Accountant, Queue},
    book::Book,
    config::Config,
    feed::{Feed, LISTS},
    key::Priority,
    metrics::Metrics,
    train_jobs::TrainJobs,
};

/// Who tells events.
const REPORTER: &str = "trainjob-accounting";
/// What readiness waits for.
const LISTED: &str = "Pods, TrainJobs and records";

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

/// Runs the accounting program until `stop` becomes true.
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
    let shown = Shown {
        metrics: metrics.registry(),
        certificates: tls::self_signed(env!("CARGO_PKG_NAME"))?,
        client: &clients.work,
    };
    let servers = Servers::start(config.served(), &readiness, shown, &until_drained).await;
    let mut servers = servers.map_err(RunError::Server)?;

    let (listed, all_listed) = watch::channel(0);
    let unreachable = Arc::new(AtomicBool::new(false));
    let (mut election, leader) =
        take_part(&config, &clients, &metrics, &unreachable, complete(all_listed.clone()));
    let (accountant, sender) = accountant(&config, &clients, &leader, &metrics);
    metrics.show(&clients, &accountant)?;
    let timers = controller::timers(&accountant).map_err(RunError::Timers)?;
    let mut tasks = tasks(&clients, &accountant, sender, listed, unreachable);
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
        () = work(&accountant, &readiness, begun, stop) => Ok(()),
        why = lost(&mut election) => Err(RunError::LeadershipLost(why)),
        ended = tasks.join_next() => {
            let task = ended.and_then(Result::ok).unwrap_or("a task");
            Err(RunError::TaskEnded(task))
        }
        Some(ended) = servers.ended() => ended.map_err(RunError::Server),
    };
    readiness.shutting_down();
    accountant.queue.close();
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

/// The accountant with all that it uses, and what sends its events.
fn accountant(
    config: &Config,
    clients: &Clients,
    leader: &LeaderGuard,
    metrics: &Arc<Metrics>,
) -> (Arc<Accountant>, Sender<Priority>) {
    let clock = Clock::new(Arc::clone(&clients.server_time));
    let (events, sender) = events::channel(
        REPORTER,
        clients.work.clone(),
        clock.clone(),
        None,
        leader.clone(),
        None,
        metrics.events_dropped.clone(),
    );
    let places = Places::new(config.concurrency.max(FEWEST_PLACES));
    let accountant = Accountant {
        book: Mutex::new(Book::new(TrainJobs::new(config.copy_labels.clone()))),
        queue: Queue::standby(places, clock.clone()),
        clock,
        client: clients.work.clone(),
        leader: leader.clone(),
        events,
        metrics: Arc::clone(metrics),
        settings: config.settings.clone(),
    };
    (Arc::new(accountant), sender)
}

/// Starts what never ends by itself; each says what it was.
fn tasks(
    clients: &Clients,
    accountant: &Arc<Accountant>,
    sender: Sender<Priority>,
    listed: watch::Sender<u8>,
    unreachable: Arc<AtomicBool>,
) -> JoinSet<&'static str> {
    let mut tasks = JoinSet::new();
    let client = clients.watch.clone();
    let feed = Arc::new(Feed { accountant: Arc::clone(accountant), client, listed, unreachable });
    let pods = Arc::clone(&feed);
    tasks.spawn(async move { never(pods.pods().await) });
    let train_jobs = Arc::clone(&feed);
    tasks.spawn(async move { never(train_jobs.train_jobs().await) });
    tasks.spawn(async move { never(feed.records().await) });
    tasks.spawn(async move {
        sender.run().await;
        "the event sender"
    });
    let (queue, client) = (Arc::clone(accountant), clients.work.clone());
    let server_time = Arc::clone(&clients.server_time);
    tasks.spawn(async move {
        clock::keep(client, server_time, || queue.queue.precision()).await;
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
    unreachable: &Arc<AtomicBool>,
    ready: impl Future<Output = ()> + Send + 'static,
) -> (Option<Election>, LeaderGuard) {
    let restarts = metrics.restarts(lease::KIND).cloned();
    let (Some(settings), Some(restarts)) = (config.leader_election.clone(), restarts) else {
        return (None, LeaderGuard::always());
    };
    let watched = Watched { unreachable: Arc::clone(unreachable), restarts };
    let (election, leader) = Election::begin(clients, settings, watched, ready);
    (Some(election), leader)
}

/// Waits until everything has been listed.
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
    accountant: &Arc<Accountant>,
    readiness: &Readiness,
    begun: impl Future<Output = ()>,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        () = begun => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    tracing::info!("watching; counting Pods");
    controller::work(accountant, stop, || readiness.shutting_down()).await;
}
