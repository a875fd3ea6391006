//! Takes part in leader election: carries out what [`trainjob_core::lease`] decides.
//!
//! One task, which looks at the clock, at a watch of the one Lease while it does not lead, and at the answers to its own
//! requests, of which there is at most one at a time. It speaks with the API server on the client for watches, so that
//! no amount of work delays a renewal.
//!
//! What everybody else gets is a [`LeaderGuard`]: whether this process may act at this moment. It ends by
//! itself, at the very instant until which the last renewal lasts, whatever this task is doing then.

mod follow;

use std::{future::pending, sync::Arc, time::Duration};

use futures::{FutureExt, future::FusedFuture};
use k8s_openapi::{
    api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime, jiff,
};
use kube::{Api, api::PostParams};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};
use trainjob_api::constants::FIELD_MANAGER;
use trainjob_core::{
    lease::{Elector, Loss, Step},
    pass::Class,
};
use trainjob_process::{client::Clients, config::LeaderElection};

pub use self::follow::{KIND, Watched};
use self::follow::{follow, until_it_leads};
use crate::{
    answer,
    clock::Clock,
    error::RequestError,
    jitter,
    leader::{LeaderGuard, Leadership},
};

/// How long the end of the process may wait until the Lease is released.
const FAREWELL: Duration = Duration::from_secs(3);

/// How often it is tried: somebody else may change the Lease at the same time.
const RELEASE_TRIES: u32 = 3;

/// What somebody who is not ready does about a Lease that nobody holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unready {
    /// Nothing: who cannot work does not lead.
    LeavesIt,
    /// It takes it unless somebody does who is ready: there is something that it can do already.
    TakesIt,
}

/// The part that this process takes in an election.
#[derive(Debug)]
pub struct Election {
    task: JoinHandle<Option<String>>,
    end: oneshot::Sender<()>,
}

impl Election {
    /// Takes part, until `ready` as far as said.
    pub fn begin(
        clients: &Clients,
        settings: LeaderElection,
        watched: Watched,
        (unready, ready): (Unready, impl Future<Output = ()> + Send + 'static),
    ) -> (Self, LeaderGuard) {
        let (leadership, guard) = watch::channel(Leadership::Waiting);
        let (end, until) = oneshot::channel();
        let namespace = settings.namespace.unwrap_or_else(|| clients.namespace.clone());
        let candidate = Candidate {
            api: Api::namespaced(clients.watch.clone(), &namespace),
            lease: format!("{namespace}/{}", settings.name),
            name: settings.name,
            retry_period: settings.times.retry_period,
            renew_deadline: settings.times.renew_deadline,
            elector: Elector::unready(identity(), settings.times),
            begun: Instant::now(),
            clock: Clock::new(Arc::clone(&clients.server_time)),
            leadership,
            told: None,
            trouble: None,
            denied: false,
        };
        let task = tokio::spawn(candidate.take_part(watched, (unready, ready), until));
        (Self { task, end }, LeaderGuard::of(guard))
    }

    /// Waits until this process has led and does not any more; says why.
    pub async fn lost(&mut self) -> String {
        match (&mut self.task).await {
            Ok(Some(why)) => why,
            Ok(None) => pending().await,
            Err(error) => error.to_string(),
        }
    }

    /// Ends the leadership and releases the Lease, so that somebody else takes it at once.
    pub async fn release(self) {
        if self.task.is_finished() || self.end.send(()).is_err() {
            return;
        }
        if timeout(FAREWELL, self.task).await.is_err() {
            tracing::warn!("the Lease could not be released; others wait until it expires");
        }
    }
}

struct Candidate {
    api: Api<Lease>,
    /// Namespace and name, as the log names it.
    lease: String,
    name: String,
    retry_period: Duration,
    renew_deadline: Duration,
    elector: Elector,
    /// Where its clock begins.
    begun: Instant,
    /// Whose time is written into the Lease. Nothing is decided by it.
    clock: Clock,
    leadership: watch::Sender<Leadership>,
    /// Whom it has said to wait for.
    told: Option<String>,
    /// What its last request failed with.
    trouble: Option<String>,
    /// Whether it has said that it lacks a right, since a request was last answered otherwise than by a failure.
    denied: bool,
}

impl Candidate {
    /// Why it does not lead any more; `None` if it was to end.
    async fn take_part(
        self,
        watched: Watched,
        (unready, ready): (Unready, impl Future<Output = ()>),
        mut until: oneshot::Receiver<()>,
    ) -> Option<String> {
        let mut ready = Box::pin(ready.fuse());
        if unready == Unready::LeavesIt {
            tokio::select! {
                () = &mut ready => {}
                _ = &mut until => return None,
            }
        }
        let (news, heard) = watch::channel(None);
        let watch = follow(self.api.clone(), self.name.clone(), news, watched);
        let watch = until_it_leads(watch, self.leadership.subscribe());
        tokio::select! {
            () = watch => None,
            why = self.run(heard, ready, until) => why,
        }
    }

    async fn run(
        mut self,
        mut heard: watch::Receiver<Option<Lease>>,
        mut ready: impl FusedFuture<Output = ()> + Unpin,
        mut until: oneshot::Receiver<()>,
    ) -> Option<String> {
        if ready.is_terminated() {
            self.elector.ready();
        }
        loop {
            match self.elector.next(self.now(), &self.wall()) {
                Step::Read => self.read().await,
                Step::Write(lease) => self.write(*lease).await,
                Step::Wait(instant) => tokio::select! {
                    _ = &mut until => {
                        self.release().await;
                        return None;
                    }
                    // What was on its way when it came to lead is old: it is answered what is new.
                    Ok(()) = heard.changed(), if self.elector.leads_until().is_none() => {
                        let lease = heard.borrow_and_update().clone();
                        self.elector.heard(lease, self.now());
                    }
                    () = &mut ready, if !ready.is_terminated() => self.elector.ready(),
                    () = sleep_until(self.begun + instant) => {}
                },
                Step::StepDown(loss) => {
                    self.leadership.send_replace(Leadership::Waiting);
                    return Some(self.why(&loss));
                }
            }
            self.publish();
        }
    }

    /// What others see as its time.
    fn wall(&self) -> MicroTime {
        MicroTime(jiff::Timestamp::try_from(self.clock.likely()).unwrap_or_default())
    }

    /// What its clock shows.
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    async fn read(&mut self) {
        let limit = self.elector.patience(self.now());
        match answer::within(limit, self.api.get_opt(&self.name)).await {
            Ok(lease) => {
                self.elector.saw(lease, self.now());
                self.answered();
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Not cut off when the process is to end: it may be stored all the same, and has to be released then.
    async fn write(&mut self, lease: Lease) {
        let sent = self.now();
        let limit = self.elector.patience(sent);
        match answer::within(limit, self.send(lease)).await {
            Ok(stored) => {
                self.elector.wrote(stored, sent, self.now());
                self.answered();
            }
            Err(error) => self.failed(&error),
        }
    }

    async fn send(&self, mut lease: Lease) -> Result<Lease, kube::Error> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), dry_run: false };
        if lease.metadata.resource_version.is_some() {
            return self.api.replace(&self.name, &params, &lease).await;
        }
        lease.metadata.name = Some(self.name.clone());
        self.api.create(&params, &lease).await
    }

    fn answered(&mut self) {
        self.trouble = None;
        self.denied = false;
    }

    fn failed(&mut self, error: &RequestError) {
        self.elector.failed(self.now(), jitter(self.retry_period));
        if was_slower(error) {
            tracing::debug!(lease = self.lease, %error, "somebody else was faster");
            return;
        }
        let first = self.trouble.replace(error.to_string()).is_none();
        let lease = &self.lease;
        if let (true, Some(until)) = (first, self.elector.leads_until()) {
            let left = until.saturating_sub(self.now());
            tracing::warn!(lease, %error, "cannot renew the Lease; leading for {left:.1?} more");
        } else if error.class() == Class::Denied && !self.denied {
            // Whatever failed before, such as for want of an answer.
            self.denied = true;
            tracing::error!(lease, %error, "cannot use the Lease. Waiting for the right");
        } else {
            // That the API server cannot be reached is said by the watches.
            tracing::debug!(lease, %error, "cannot use the Lease");
        }
    }

    fn publish(&mut self) {
        let now = match self.elector.leads_until() {
            Some(until) => Leadership::Leading { until: self.begun + until },
            None => Leadership::Waiting,
        };
        let before = self.leadership.send_replace(now);
        if before == Leadership::Waiting && now != Leadership::Waiting {
            let (lease, identity) = (&self.lease, self.elector.identity());
            tracing::info!(lease, identity, "leading");
        }
        let holder = self.elector.other_holder();
        if now == Leadership::Waiting && holder != self.told.as_deref() {
            self.told = holder.map(str::to_owned);
            if let Some(holder) = holder {
                tracing::info!(lease = self.lease, holder, "waiting: {holder} leads");
            }
        }
    }

    fn why(&self, loss: &Loss) -> String {
        let lease = &self.lease;
        match loss {
            Loss::TakenBy(holder) => format!("the Lease {lease} is held by {holder}"),
            Loss::NotRenewed => {
                let within = self.renew_deadline;
                let error = self.trouble.as_deref().unwrap_or("the process stood still");
                format!("the Lease {lease} was not renewed within {within:?}: {error}")
            }
        }
    }

    async fn release(mut self) {
        // The fate of a renewal may not be known.
        let mut look = self.elector.leads_until().is_some() && self.elector.is_outdated();
        self.leadership.send_replace(Leadership::Waiting);
        for _ in 0..RELEASE_TRIES {
            if look {
                self.read().await;
            }
            let Some(lease) = self.elector.release(&self.wall()) else { return };
            let limit = self.elector.patience(self.now());
            match answer::within(limit, self.send(lease)).await {
                Ok(_) => {
                    tracing::info!(lease = self.lease, "gave the Lease back");
                    return;
                }
                Err(error) if was_slower(&error) => look = true,
                Err(error) => {
                    tracing::warn!(lease = self.lease, %error, "cannot give the Lease back");
                    return;
                }
            }
        }
    }
}

/// Whether a write was decided on an old version: the Lease has been changed, made or deleted since.
fn was_slower(error: &RequestError) -> bool {
    matches!(error.class(), Class::Conflict | Class::Exists | Class::Gone)
}

/// Who this process is among all that ever hold the Lease.
fn identity() -> String {
    format!("{}_{:016x}", hostname(), random())
}

/// In a Pod this is the Pod's name.
fn hostname() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

/// A number that no other process has: the system's randomness, which hash maps are keyed with.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_processes_of_a_host_have_one_name() {
        let (one, other) = (identity(), identity());
        assert_ne!(one, other);
        let (host, random) = one.rsplit_once('_').unwrap();
        assert!(!host.is_empty() && random.len() == 16, "{one}");
    }
}
