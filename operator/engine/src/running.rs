//! How a program of one controller starts, works and stops.
//!
//! Health is served at once and watches begin. Work begins when everything is known and, where a leader is elected, this
//! process leads. When it is to stop, readiness starts failing, no new work is taken in, the work under way is finished, the
//! Lease is released, and then the servers end. A process that has lost the leader election ends at once, with an error.

use std::{convert::Infallible, future::pending, io, sync::Arc};

use thiserror::Error;
use tokio::{sync::watch, task::JoinSet};
use trainjob_process::{
    Servers, client::Clients, config::LeaderElection, health::Readiness, tls::SelfSignedError,
};

use crate::{
    controller::{self, Controller},
    leader::LeaderGuard,
    lease::{Election, Unready, Watched},
};

/// Why a program ended.
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

/// A program that has started.
pub struct Running<C: Controller> {
    /// What works.
    pub controller: Arc<C>,
    /// Whether it can.
    pub readiness: Readiness,
    /// Its servers.
    pub servers: Servers,
    /// Tells the servers that nothing is under way any more.
    pub drained: watch::Sender<bool>,
    /// Its part in the election, where there is one.
    pub election: Option<Election>,
    /// What never ends by itself; each says what it was.
    pub tasks: JoinSet<&'static str>,
}

impl<C: Controller> Running<C> {
    /// Works from `begun` on, which is logged so, until `stop` becomes true or something else ends it.
    ///
    /// # Errors
    ///
    /// What else has ended it.
    pub async fn work(
        self,
        begun: impl Future<Output = ()>,
        working: &str,
        stop: watch::Receiver<bool>,
    ) -> Result<(), RunError> {
        let Self { controller, readiness, mut servers, drained, mut election, mut tasks } = self;
        let timers = controller::timers(&controller).map_err(RunError::Timers)?;
        tasks.spawn(async move {
            timers.await;
            "the timers"
        });
        let stopping = stop.clone();
        let ended = tokio::select! {
            () = work(&controller, &readiness, begun, working, stop) => Ok(()),
            why = lost(&mut election) => Err(RunError::LeadershipLost(why)),
            ended = tasks.join_next() => {
                let task = ended.and_then(Result::ok).unwrap_or("a task");
                Err(RunError::TaskEnded(task))
            }
            Some(ended) = servers.ended() => ended.map_err(RunError::Server),
        };
        readiness.shutting_down();
        controller.queue().close();
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

/// What never ends does not say what it was.
#[must_use]
pub const fn never(infallible: Infallible) -> &'static str {
    match infallible {}
}

/// Takes part in the election, where there is one, once `ready`.
pub fn take_part(
    election: Option<LeaderElection>,
    clients: &Clients,
    watched: Watched,
    ready: impl Future<Output = ()> + Send + 'static,
) -> (Option<Election>, LeaderGuard) {
    match election {
        None => (None, LeaderGuard::always()),
        Some(settings) => {
            let part = (Unready::LeavesIt, ready);
            let (election, leader) = Election::begin(clients, settings, watched, part);
            (Some(election), leader)
        }
    }
}

/// Waits until this many kinds have been listed.
pub async fn complete(mut listed: watch::Receiver<u8>, lists: u8) {
    if listed.wait_for(|listed| *listed >= lists).await.is_err() {
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
async fn work<C: Controller>(
    controller: &Arc<C>,
    readiness: &Readiness,
    begun: impl Future<Output = ()>,
    working: &str,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        () = begun => {}
        _ = stop.wait_for(|stop| *stop) => return,
    }
    tracing::info!("{working}");
    controller::work(controller, stop, || readiness.shutting_down()).await;
}
