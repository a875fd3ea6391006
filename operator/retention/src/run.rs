//! The wiring, and the order of starting and stopping.
//!
//! As in every [program of one controller](trainjob_engine::running), nothing is deleted before everything is known and,
//! where a leader is elected, this process leads.

use std::sync::{Arc, atomic::AtomicBool};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use trainjob_engine::{
    clock::{self, Clock},
    controller::Controller as _,
    events::{self, Sender},
    leader::LeaderGuard,
    lease::{self, Watched},
    places::Places,
    running::{RunError, Running, complete, never, take_part},
    shares::FEWEST_PLACES,
};
use trainjob_process::{Servers, Shown, client::Clients, config::Rate, health::Readiness, tls};
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
    let servers = servers.map_err(RunError::Server)?;

    let (listed, all_listed) = watch::channel(0);
    let watched = Watched {
        unreachable: Arc::new(AtomicBool::new(false)),
        restarts: metrics.restarts(lease::KIND),
    };
    let ready = complete(all_listed.clone(), LISTS);
    let (election, leader) = take_part(config.leader_election.clone(), &clients, watched, ready);
    let (remover, sender) = remover(&config, &clients, &leader, &metrics);
    gauges::show(&remover, Arc::clone(&clients.server_time))?;
    let tasks = tasks(&config, &clients, &remover, sender, listed);

    let is_ready = readiness.clone();
    let begun = async move {
        complete(all_listed, LISTS).await;
        is_ready.set(LISTED, true);
        leader.granted().await;
    };
    let running = Running { controller: remover, readiness, servers, drained, election, tasks };
    running.work(begun, "watching; deleting what policies say", stop).await
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
