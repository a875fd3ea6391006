//! The wiring, and the order of starting and stopping.
//!
//! As in every [program of one controller](trainjob_engine::running), nothing is written before everything is known and,
//! where a leader is elected, this process leads.

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use trainjob_engine::{
    clock::{self, Clock},
    events::{self, Sender},
    leader::LeaderGuard,
    lease::{self, Watched},
    places::Places,
    running::{RunError, Running, complete, never, take_part},
    shares::FEWEST_PLACES,
};
use trainjob_process::{Servers, Shown, client::Clients, health::Readiness, tls};

use crate::{
    accountant::{Accountant, Queue},
    book::Book,
    config::Config,
    feed::{Feed, LISTS},
    key::Priority,
    metrics::{self, Metrics},
    train_jobs::TrainJobs,
    unlabelled,
};

/// Who tells events.
const REPORTER: &str = "trainjob-accounting";
/// What readiness waits for.
const LISTED: &str = "Pods, TrainJobs and records";

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
    let metrics = Metrics::new(config.namespaces_shown)?;
    metrics.show(&clients)?;
    let shown = Shown {
        metrics: metrics.registry(),
        certificates: tls::self_signed(env!("CARGO_PKG_NAME"))?,
        client: &clients.work,
    };
    let servers = Servers::start(config.served(), &readiness, shown, &until_drained).await;
    let servers = servers.map_err(RunError::Server)?;

    let (listed, all_listed) = watch::channel(0);
    let unreachable = Arc::new(AtomicBool::new(false));
    let watched =
        Watched { unreachable: Arc::clone(&unreachable), restarts: metrics.restarts(lease::KIND) };
    let ready = complete(all_listed.clone(), LISTS);
    let (election, leader) = take_part(config.leader_election.clone(), &clients, watched, ready);
    let (accountant, sender) = accountant(&config, &clients, (&leader, &unreachable), &metrics);
    metrics::show(&accountant)?;
    let tasks = tasks(&clients, &accountant, sender, listed, unreachable);

    let is_ready = readiness.clone();
    let begun = async move {
        complete(all_listed, LISTS).await;
        is_ready.set(LISTED, true);
        leader.granted().await;
    };
    let running = Running { controller: accountant, readiness, servers, drained, election, tasks };
    running.work(begun, "watching; counting Pods", stop).await
}

/// The accountant with all that it uses, and what sends its events.
fn accountant(
    config: &Config,
    clients: &Clients,
    (leader, unreachable): (&LeaderGuard, &Arc<AtomicBool>),
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
        lost_labels: Notify::new(),
        unreachable: Arc::clone(unreachable),
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
    let looking = Arc::clone(accountant);
    tasks.spawn(async move { never(unlabelled::release(looking).await) });
    let releasing = Arc::clone(accountant);
    tasks.spawn(async move { never(unlabelled::release_nameless(releasing).await) });
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
