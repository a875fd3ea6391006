//! What every controller does with its keys: takes them from the queue, works on them, and is brought back to them.
//!
//! A [`Controller`] says what its keys are, where each waits and what a pass over one does. [`work`] and [`timers`] do the
//! rest, in the same way for every controller: a pass has a place for its requests, however it ends its place and its key
//! are given back, and a process that stops takes nothing new and finishes what is under way.
//!
//! A whole controller in one file, which removes finished ConfigMaps, is `e2e/tests/second_controller/controller.rs`.

use std::{
    convert::Infallible,
    future::ready,
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use trainjob_core::queue_position::{QueueKey, QueuePosition, QueuePriority};

use crate::{
    places::Place,
    queue::{Attempt, Next, Placement, Queue},
    shares::Operation,
};

/// How long work under way may take at the end. Less than the 30 seconds a Pod is given by default.
const DRAIN: Duration = Duration::from_secs(20);

/// As long as fewer keys wait, those are put that [can wait](Controller::can_wait).
const FEW_WAIT: usize = 256;

/// So many of them are put after so long in any case: what waits may wait for a namespace whose requests hang.
const TRICKLE: (usize, Duration) = (64, Duration::from_millis(50));

/// Of what [begins early](trainjob_core::queue_position::Begins::Early), one key is begun in so long: what is more pressing is not
/// known yet. And an API server remembers a hundred changes of a kind at first; once there were more since a list began, it
/// reads the rest of that list from etcd, page by page, which takes three times as long (seen with 1.36).
const EARLY_EVERY: Duration = Duration::from_millis(500);

/// The wait after a pass that broke off, unless the controller says otherwise.
const AFTER_PANIC: Duration = Duration::from_secs(5);

/// What decides what is to be done, and does it.
pub trait Controller: Send + Sync + Sized + 'static {
    /// What it works on.
    type Key: QueueKey;
    /// What goes first.
    type Priority: QueuePriority;

    /// What waits.
    fn queue(&self) -> &Queue<Self::Key, Self::Priority>;

    /// Everything there is to work on.
    fn keys(&self) -> Vec<Self::Key>;

    /// The position that the next pass over a key belongs in; `None` when there is nothing (any more) to work on.
    fn position(&self, key: &Self::Key) -> Option<QueuePosition<Self::Priority>>;

    /// Where a key belongs in the queue; `None` when there is nothing (any more) to work on.
    fn placement(&self, key: &Self::Key) -> Option<Placement<Self::Priority>> {
        self.position(key).map(Placement::from)
    }

    /// Works on one key until there is nothing to do for now, and arms its timers. Every request
    /// [enters](Place::enter) its flow first.
    fn pass(
        self: &Arc<Self>,
        key: &Self::Key,
        priority: Self::Priority,
        place: &Place<Self::Priority>,
    ) -> impl Future<Output = Passed> + Send;

    /// A pass begins, for which the key has waited so long.
    fn begun(&self, _priority: Self::Priority, _waited: Duration) {}

    /// A pass that began has ended so, after so long.
    fn ended(&self, _priority: Self::Priority, _passed: Passed, _took: Duration) {}

    /// Says when a key is tried again whose pass has ended otherwise than by itself.
    fn broken_off(&self, key: &Self::Key, _priority: Self::Priority) {
        self.queue().retry(key, Some(AFTER_PANIC));
    }

    /// This process leads, and not everything is listed yet: what [begins early](trainjob_core::queue_position::Begins::Early) is worked on.
    fn begin_early(&self) {
        for key in self.queue().open_early() {
            let placement = self.placement(&key);
            self.queue().note(&key, placement);
        }
    }

    /// From now on there is somebody who works on everything: every key is looked at. Returns those that most likely need
    /// nothing, which are looked at a few at a time, behind all that waits.
    fn take_over(&self) -> Vec<Self::Key> {
        // What is news from here on is queued; what was before is among the keys.
        self.queue().open();
        let placed = |key| Some((self.placement(&key)?, key));
        self.queue().add_all(self.keys().into_iter().filter_map(placed));
        Vec::new()
    }

    /// A key is looked at because of news. Unless a controller does it at once, one that is gone is looked at, too, to forget
    /// what belonged to it.
    fn wake(&self, key: Self::Key, gone: QueuePosition<Self::Priority>) {
        let placement = self.placement(&key).unwrap_or_else(|| gone.into());
        self.queue().place(key, placement);
    }
}

/// How a pass has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// There is nothing left to do for now.
    Settled,
    /// A request failed.
    Failed,
    /// The key was told to wait, or took too many rounds.
    Postponed,
    /// It goes on when a request of this operation may be sent.
    WaitsFor(Operation),
    /// There is no such object any more.
    Gone,
    /// By a panic, or because the process stops.
    BrokenOff,
}

/// Takes over and works until `stop`; then calls `stopping` and finishes what is under way.
pub async fn work<C: Controller>(
    controller: &Arc<C>,
    stop: watch::Receiver<bool>,
    stopping: impl FnOnce(),
) {
    work_once_listed(controller, ready(()), stop, stopping).await;
}

/// Like [`work`]; but before everything is `listed` it works on what [begins early](trainjob_core::queue_position::Begins::Early) alone.
pub async fn work_once_listed<C: Controller>(
    controller: &Arc<C>,
    listed: impl Future<Output = ()>,
    mut stop: watch::Receiver<bool>,
    stopping: impl FnOnce(),
) {
    let mut worker = Worker { controller, passes: JoinSet::new() };
    tokio::select! {
        () = worker.begin_early() => {}
        () = listed => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    if !*stop.borrow() {
        tokio::select! {
            () = worker.take_over() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
    stopping();
    worker.finish().await;
}

/// The passes of a controller.
struct Worker<'a, C> {
    controller: &'a Arc<C>,
    passes: JoinSet<()>,
}

impl<C: Controller> Worker<'_, C> {
    /// Works on what begins early; never returns.
    async fn begin_early(&mut self) {
        self.controller.begin_early();
        let mut turns = interval(EARLY_EVERY);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            turns.tick().await;
            let next = self.controller.queue().next().await;
            self.begin(next);
        }
    }

    /// Works on everything; never returns.
    async fn take_over(&mut self) {
        let mut backlog = self.controller.take_over();
        let mut trickle = interval(TRICKLE.1);
        loop {
            let room = FEW_WAIT.saturating_sub(self.controller.queue().waiting());
            self.feed(&mut backlog, room);
            tokio::select! {
                next = self.controller.queue().next() => self.begin(next),
                _ = trickle.tick(), if !backlog.is_empty() => self.feed(&mut backlog, TRICKLE.0),
            }
        }
    }

    fn begin(&mut self, next: Next<C::Key, C::Priority>) {
        // In a box: a task is aligned to a cache line, and of glibc's allocator such memory is hardly ever used again when it
        // is long (glibc bug 14581). A pass is sixteen kilobytes.
        self.passes.spawn(Box::pin(Turn::new(Arc::clone(self.controller), next).take()));
        while let Some(ended) = self.passes.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "a pass broke off; its object is tried again");
            }
        }
    }

    /// Puts so many keys that could wait.
    fn feed(&self, backlog: &mut Vec<C::Key>, most: usize) {
        for key in backlog.drain(backlog.len().saturating_sub(most)..) {
            if let Some(placement) = self.controller.placement(&key) {
                self.controller.queue().place(key, placement);
            }
        }
        if backlog.is_empty() {
            // There may have been hundreds of thousands.
            *backlog = Vec::new();
        }
    }

    async fn finish(mut self) {
        tracing::info!(under_way = self.passes.len(), "stopping");
        let drain = async { while self.passes.join_next().await.is_some() {} };
        if tokio::time::timeout(DRAIN, drain).await.is_err() {
            tracing::warn!(
                "some work under way did not end in time; it is repeated after the next start"
            );
        }
    }
}

/// Starts the thread of the timers, which ends when the queue is [closed](Queue::close); waits for its end.
///
/// # Errors
///
/// There is no thread to be had.
pub fn timers<C: Controller>(controller: &Arc<C>) -> io::Result<impl Future<Output = ()> + use<C>> {
    let (running, ended) = oneshot::channel::<Infallible>();
    let controller = Arc::clone(controller);
    std::thread::Builder::new().name("timers".to_owned()).spawn(move || {
        let _running = running;
        controller.queue().run_timers(|key| controller.placement(key));
    })?;
    Ok(async {
        // Nothing is ever sent: the other end is dropped when the thread ends, however it does.
        let _ = ended.await;
    })
}

/// One pass over one key. However it ends, its place and its key are given back.
struct Turn<C: Controller> {
    controller: Arc<C>,
    key: C::Key,
    priority: C::Priority,
    attempt: Attempt,
    place: Option<Place<C::Priority>>,
    begun: Instant,
    passed: Passed,
}

impl<C: Controller> Turn<C> {
    fn new(controller: Arc<C>, next: Next<C::Key, C::Priority>) -> Self {
        let Next { key, priority, waited, attempt, place } = next;
        controller.begun(priority, waited);
        let (begun, passed) = (Instant::now(), Passed::BrokenOff);
        Self { controller, key, priority, attempt, place: Some(place), begun, passed }
    }

    async fn take(mut self) {
        if let Some(place) = &self.place {
            self.passed = self.controller.pass(&self.key, self.priority, place).await;
        }
    }

    /// The key waits for the turn of this operation, if there is still something to work on.
    fn wait_for(&self, operation: Operation) {
        let (queue, key) = (self.controller.queue(), &self.key);
        match self.controller.position(key) {
            Some(position) => queue.wait_for(key, position, self.attempt, operation),
            None => queue.done(key),
        }
    }
}

impl<C: Controller> Drop for Turn<C> {
    fn drop(&mut self) {
        // The place first: the queue wakes who looks for one.
        self.place = None;
        self.controller.ended(self.priority, self.passed, self.begun.elapsed());
        match self.passed {
            Passed::WaitsFor(operation) => return self.wait_for(operation),
            Passed::BrokenOff if std::thread::panicking() => {
                self.controller.broken_off(&self.key, self.priority);
            }
            _ => {}
        }
        self.controller.queue().done(&self.key);
    }
}
