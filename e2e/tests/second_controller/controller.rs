//! A whole controller on the engine: it removes finished ConfigMaps.
//!
//! One that is annotated with `e2e.trainjob.dev/finished-at`, an instant, and `e2e.trainjob.dev/ttl-seconds` is deleted so
//! many seconds after that instant, by the API server's clock.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff;
use kube::api::{Api, DeleteParams, Preconditions};
use prometheus::IntCounter;
use tokio::sync::watch;
use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_core::queue_position::{QueuePosition, QueuePriority};
use trainjob_engine::answer::timed;
use trainjob_engine::clock::{self, Clock};
use trainjob_engine::controller::{self, Controller, Passed};
use trainjob_engine::places::Places;
use trainjob_engine::records::Records;
use trainjob_engine::shares::{Flow, Operation, Verb};
use trainjob_engine::watch::{Span, Subject};
use trainjob_process::client::Clients;

const DELETE: Operation = Operation { verb: Verb::Delete, kind: "configmaps" };
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Only {
    Cleanup,
}

impl QueuePriority for Only {
    const ALL: &'static [Self] = &[Self::Cleanup];
    const EVENTS: Self = Self::Cleanup;

    fn begins(_turn: u8) -> Self {
        Self::Cleanup
    }

    fn kept(self, _places: usize) -> usize {
        0
    }
}

type Queue = trainjob_engine::queue::Queue<ObjectKey, Only>;
type Place = trainjob_engine::places::Place<Only>;

const fn position(due: Timestamp) -> QueuePosition<Only> {
    QueuePosition { priority: Only::Cleanup, due }
}

/// What is known of a finished ConfigMap.
#[derive(Clone)]
struct Finished {
    version: Preconditions,
    due: Timestamp,
}

impl Finished {
    fn of(map: &ConfigMap) -> Option<Self> {
        let annotation =
            |name| map.metadata.annotations.as_ref()?.get(&format!("e2e.trainjob.dev/{name}"));
        let at: jiff::Timestamp = annotation("finished-at")?.parse().ok()?;
        let (uid, resource_version) = (map.metadata.uid.clone(), &map.metadata.resource_version);
        let version = Preconditions { uid, resource_version: resource_version.clone() };
        Some(Self {
            version,
            due: Timestamp(at.as_second()).plus(annotation("ttl-seconds")?.parse().ok()?),
        })
    }
}

pub(super) struct Cleaner {
    clients: Clients,
    finished: Records<Finished>,
    queue: Queue,
    clock: Clock,
}

impl Cleaner {
    /// Runs until `stop` becomes true.
    pub(super) async fn run(clients: Clients, stop: watch::Receiver<bool>) -> Result<()> {
        let clock = Clock::new(Arc::clone(&clients.server_time));
        let queue = Queue::standby(Places::new(4), clock.clone());
        let cleaner = Arc::new(Self { clients, finished: Records::default(), queue, clock });
        let restarts = IntCounter::new("restarts", "Failed watches.")?;
        let timers = controller::timers(&cleaner)?;
        let (work, server_time) = (&cleaner.clients.work, &cleaner.clients.server_time);
        let work_begins = async {
            cleaner.finished.listed().await;
            controller::work(&cleaner, stop, || cleaner.queue.close()).await;
        };
        tokio::select! {
            () = cleaner.watch(&restarts) => {}
            () = clock::keep(work.clone(), server_time.clone(), || cleaner.queue.precision()) => {}
            () = timers => {}
            () = work_begins => {}
        }
        Ok(())
    }

    async fn watch(&self, restarts: &IntCounter) {
        let subject =
            Subject { kind: "ConfigMap", install: Some("it is there"), span: Span::Long, restarts };
        let unreachable = AtomicBool::new(false);
        let maps: Api<ConfigMap> = Api::all(self.clients.watch.clone());
        let changed = |key| self.wake(key, position(Timestamp(0)));
        self.finished.follow(maps, subject, &unreachable, Finished::of, changed).await;
    }
}

impl Controller for Cleaner {
    type Key = ObjectKey;
    type Priority = Only;

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn keys(&self) -> Vec<ObjectKey> {
        self.finished.keys()
    }

    fn position(&self, key: &ObjectKey) -> Option<QueuePosition<Only>> {
        Some(position(self.finished.get(key)?.due))
    }

    async fn pass(self: &Arc<Self>, key: &ObjectKey, _: Only, place: &Place) -> Passed {
        let Some(finished) = self.finished.get(key) else {
            self.queue.requeue_at(key, None);
            return Passed::Gone;
        };
        if !self.clock.now().has_come(finished.due) {
            self.queue.requeue_at(key, Some(finished.due));
            return Passed::Settled;
        }
        if !place.enter(&Flow { namespace: Arc::clone(&key.namespace), operation: DELETE }) {
            return Passed::WaitsFor(DELETE);
        }
        let maps: Api<ConfigMap> = Api::namespaced(self.clients.work.clone(), &key.namespace);
        let fenced = DeleteParams { preconditions: Some(finished.version), ..Default::default() };
        let deleted = place.ask().answer(timed(maps.delete(&key.name, &fenced))).await;
        if deleted.flatten().is_ok() {
            return Passed::Settled;
        }
        self.queue.retry(key, Some(Duration::from_secs(1)));
        Passed::Failed
    }
}
