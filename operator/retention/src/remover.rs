//! Deletes what the [state](crate::cluster_state) says, with the queue and the places of `trainjob-engine`.
//!
//! A pass over an object asks the state what is to be done about it, does that, and tells the state what came of it. Every
//! request that changes something is sent only while this process leads, and a DELETE has the UID and the version of the
//! object (`docs/retention.md`, R33).

mod deletion;
mod events;
mod news;
pub(crate) mod owners;
mod path;
mod pods;
pub(crate) mod release;
mod requests;
mod rights;
mod served;
mod tasks;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Client;
use tokio::sync::{Notify, watch};
use trainjob_api::time::Timestamp;
use trainjob_engine::{
    clock::Clock,
    controller::{Controller, Passed},
    events::{Event, EventRecorder},
    leader::LeaderGuard,
    queue::numbers::Numbers,
    shares::{Flow, Operation, Verb},
};
use trainjob_process::server_time::boot_time;
use trainjob_retention_core::facts;

pub use self::path::collection;
use self::served::Served;
use crate::{
    cluster_state::{ClusterState, Effects, SOON, Step, Verb as RightVerb},
    config::Target,
    key::{Key, Position, Priority, TargetId, position},
    metrics::Metrics,
};

/// The queue of objects.
pub type Queue = trainjob_engine::queue::Queue<Key, Priority>;
/// A place for requests.
type Place = trainjob_engine::places::Place<Priority>;

/// A GET of an owner, of whatever kind: what makes one slow makes all slow.
const ASK_OWNER: Operation = Operation { verb: Verb::Get, kind: "owners" };

/// What is asked and told by everybody.
pub struct Remover {
    state: Mutex<ClusterState>,
    served: Mutex<Vec<Served>>,
    queue: Queue,
    clock: Clock,
    client: Client,
    leader: LeaderGuard,
    events: EventRecorder,
    metrics: Arc<Metrics>,
    /// Something has to be evaluated.
    to_evaluate: Notify,
    /// Something stands in a line.
    in_line: Notify,
    /// It has changed what is watched.
    watches: watch::Sender<()>,
    /// An evaluation has ended.
    evaluations: watch::Sender<()>,
}

/// What a remover needs.
pub struct Parts {
    /// What is known.
    pub state: ClusterState,
    /// The target kinds, by their [`TargetId`].
    pub targets: Vec<Target>,
    /// What waits.
    pub queue: Queue,
    /// The time.
    pub clock: Clock,
    /// For its requests.
    pub client: Client,
    /// Whether it may act.
    pub leader: LeaderGuard,
    /// Where events are handed in.
    pub events: EventRecorder,
    /// What it counts.
    pub metrics: Arc<Metrics>,
}

impl Remover {
    /// Of these parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts { state, targets, queue, clock, client, leader, events, metrics } = parts;
        let served = targets.into_iter().map(|target| {
            // The configuration is read once, and flows are told apart by names that live as long as the process.
            let kind: &'static str = Box::leak(target.resource.clone().into_boxed_str());
            Served {
                target,
                operation: Operation { verb: Verb::Delete, kind },
                version: None,
                is_gone: false,
                absence: None,
            }
        });
        Self {
            state: Mutex::new(state),
            served: Mutex::new(served.collect()),
            queue,
            clock,
            client,
            leader,
            events,
            metrics,
            to_evaluate: Notify::new(),
            in_line: Notify::new(),
            watches: watch::Sender::new(()),
            evaluations: watch::Sender::new(()),
        }
    }

    /// What is known.
    pub fn state(&self) -> MutexGuard<'_, ClusterState> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What it counts.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Hands in an event.
    pub fn record(&self, event: Event) {
        self.events.record(event);
    }

    /// How full the queue is.
    #[must_use]
    pub fn queue_numbers(&self) -> Numbers {
        self.queue.numbers()
    }

    /// How many flows are answered slowly, or back off.
    #[must_use]
    pub fn slow_flows(&self) -> usize {
        let backing_off = self.state().backing_off();
        self.queue.slow_flows().saturating_add(backing_off)
    }

    /// How many names are deleted and made again, over and over.
    #[must_use]
    pub fn loops(&self) -> usize {
        self.state().loops(self.clock.now().stamp())
    }

    /// The target kinds, by their [`TargetId`].
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.iter().map(|served| served.target.clone()).collect()
    }

    /// Whether this process may act.
    #[must_use]
    pub const fn leader(&self) -> &LeaderGuard {
        &self.leader
    }

    /// Tells when it has changed what is watched.
    #[must_use]
    pub fn watches(&self) -> watch::Receiver<()> {
        self.watches.subscribe()
    }

    /// Tells when an evaluation has ended.
    #[must_use]
    pub fn evaluations(&self) -> watch::Receiver<()> {
        self.evaluations.subscribe()
    }

    /// A target kind, and in which version it is served.
    #[must_use]
    pub fn served(&self, target: TargetId) -> Option<(Target, Option<Arc<str>>)> {
        self.target(target).map(|served| (served.target, served.version))
    }

    /// Whether a kind is known not to be served.
    #[must_use]
    pub fn is_gone(&self, target: TargetId) -> bool {
        self.target(target).is_some_and(|served| served.is_gone)
    }

    /// What the API server serves instead of a kind, if it has said last that it does not serve that.
    #[must_use]
    pub fn absence(&self, target: TargetId) -> Option<Arc<str>> {
        self.target(target)?.absence
    }

    /// Notes what the API server serves instead of a kind; `None`: it serves it.
    pub fn note_absence(&self, target: TargetId, absence: Option<Arc<str>>) {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(served) = served.get_mut(target.0) {
            served.absence = absence;
        }
    }

    fn target(&self, target: TargetId) -> Option<Served> {
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.get(target.0).cloned()
    }

    /// Notes the version in which a kind is served; `None`: it is not.
    pub fn serve(&self, target: TargetId, version: Option<Arc<str>>) {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(served) = served.get_mut(target.0) {
            served.is_gone = version.is_none();
            served.version = version;
        }
    }

    /// Has everything looked at that news are about.
    pub fn apply(&self, effects: Effects) {
        let Effects { look, evaluate, watches } = effects;
        for key in look {
            self.wake(key, position(None, None));
        }
        if watches {
            self.watches.send_replace(());
        }
        if evaluate {
            self.to_evaluate.notify_one();
        }
    }

    async fn ask_owner(
        &self,
        key: &Key,
        owner: &facts::Controller,
        place: &Place,
    ) -> Option<Passed> {
        let namespace = Arc::clone(&key.object.namespace);
        if !place.enter(&Flow { namespace, operation: ASK_OWNER }) {
            return Some(Passed::WaitsFor(ASK_OWNER));
        }
        let answer = owners::ask(&self.client, &key.object.namespace, owner);
        match place.ask().answer(answer).await.flatten() {
            Ok(answer) => {
                let now = self.clock.now();
                self.state().answered(key, &owner.uid, answer, now, boot_time());
                None
            }
            Err(error) => {
                tracing::debug!(object = %key.object, %error, "cannot ask for its owner");
                if requests::is_forbidden(&error) {
                    let rights = self.rights_about(owner, &[RightVerb::Get]).await;
                    let now = self.clock.now();
                    self.state().owner_refused(key, &rights, now, boot_time());
                }
                let again = self.state().ask_failed(key);
                self.queue.retry(key, again);
                Some(Passed::Failed)
            }
        }
    }
}

impl Controller for Remover {
    type Key = Key;
    type Priority = Priority;

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn keys(&self) -> Vec<Key> {
        self.state().keys()
    }

    fn take_over(&self) -> Vec<Key> {
        self.queue.open();
        let effects = self.state().take_over();
        // The evaluation queues what is due, and arms the timers of the rest.
        self.apply(effects);
        Vec::new()
    }

    fn position(&self, key: &Key) -> Option<Position> {
        self.state().position(key, self.clock.now())
    }

    async fn pass(self: &Arc<Self>, key: &Key, _: Priority, place: &Place) -> Passed {
        loop {
            let (step, news) = {
                let (mut state, now, monotonic) = (self.state(), self.clock.now(), boot_time());
                state.notice_time(now, monotonic);
                (state.look(key, now, monotonic), state.take_news())
            };
            self.tell(news);
            match step {
                Step::Gone => {
                    self.arm(key, None, None);
                    return Passed::Gone;
                }
                Step::Idle => return Passed::Settled,
                Step::Wait(wait) => {
                    self.arm(key, wait.until, wait.longest);
                    return Passed::Settled;
                }
                Step::Line => {
                    self.in_line.notify_one();
                    return Passed::Settled;
                }
                Step::AskOwner(owner) => {
                    if let Some(passed) = self.ask_owner(key, &owner, place).await {
                        return passed;
                    }
                }
                Step::AskRelease(uid) => {
                    if let Some(passed) = self.ask_release(key, &uid, place).await {
                        return passed;
                    }
                }
                Step::DeletePods(deletion) => {
                    return self.delete_pods(key, &deletion, place).await;
                }
                Step::Delete(deletion) => return self.delete(key, &deletion, place).await,
            }
        }
    }
}

impl Remover {
    fn arm(&self, key: &Key, until: Option<Timestamp>, longest: Option<Duration>) {
        self.look_at(key, until);
        self.queue.retry(key, longest);
    }

    /// Has an object looked at when that instant comes; `None`: not any more. If it is far, the next surveys find it in time:
    /// a timer for each object that waits for days would take as much room as a third of the object.
    pub fn look_at(&self, key: &Key, at: Option<Timestamp>) {
        let soon = self.clock.now().stamp().plus(SOON);
        self.queue.requeue_at(key, at.filter(|at| *at <= soon));
    }
}
