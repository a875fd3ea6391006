//! Which job is worked on next: priorities, fair turns, one worker a key at a time, and timers.
//!
//! Work waits in three [priorities](trainjob_core::priority). Within a priority flows take turns: the keys of one
//! namespace, and once a key was planned and had to wait, those whose next request is of the same
//! [flow](crate::shares). First attempts go before repeated ones. Within a flow it goes by the instant at which work was
//! due, and then by the order in which it came. A key waits at most once; one that is being worked on waits until that
//! is done.
//!
//! A key is taken together with a [place](Place) for its requests, which the [shares](crate::shares) allow.
//!
//! Two kinds of timers bring keys back: requeues at an instant of the API server's clock, which lifecycle rules
//! ask for, and retries after a while. All of them are entries of two heaps, so that a hundred thousand
//! of them cost no task each.
//!
//! Before there is somebody who works, nothing is taken in: on a replica that waits for weeks, what has
//! come and gone would pile up. Whoever begins to work puts every key that there is then, or has [noted](Queue::note) as
//! they came and went what has to be looked at and when, so that it begins at once however many there are.
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
//! use trainjob_api::time::Timestamp;
//! use trainjob_core::{facts::ObjectKey, priority::{Priority, QueuePosition}};
//! use trainjob_engine::{clock::Clock, places::Places, queue::Queue};
//! use trainjob_process::server_time::ServerTime;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let key = |name: &str| ObjectKey::of(&ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() });
//! let clock = Clock::new(ServerTime::new(std::time::Duration::ZERO));
//! let queue = Queue::standby(Places::new(64), clock);
//! queue.open();
//! queue.add(key("new"), QueuePosition::LIVE);
//! queue.add(key("late"), QueuePosition { priority: Priority::Stop, due: Timestamp(1_000) });
//! // A deadline that is due goes first.
//! let next = queue.next().await;
//! assert_eq!((&next.key, next.priority), (&key("late"), Priority::Stop));
//! // Whatever comes of the key meanwhile waits until this worker is done with it.
//! queue.done(&next.key);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod next;
pub mod numbers;
mod placement;
mod state;
mod timers;
mod turns;

use std::{
    future::pending,
    pin::pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use trainjob_api::time::Timestamp;
use trainjob_core::{
    queue_position::{Begins, QueueKey, QueuePosition, QueuePriority},
    server_time::Precision,
};

use self::state::{Phase, State};
pub use self::{next::Next, placement::Placement, turns::Attempt};
use crate::{clock::Clock, places::Places, shares::Operation};

/// What is due so soon makes it worth to know the time as well as can be: to find out takes about as many answers, one a
/// second.
const SOON: Duration = Duration::from_secs(10);
/// How often it is looked whether a key that waits may go. Time alone can make that so: a flow that has not answered for
/// a while is slow, and makes room for others that have not answered yet.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The queue, shared by watches, workers and the timer thread.
#[derive(Debug)]
pub struct Queue<K, P: QueuePriority> {
    places: Arc<Places<P>>,
    clock: Clock,
    state: Mutex<State<K, P>>,
    work: Notify,
    timer: Condvar,
}

impl<K: QueueKey, P: QueuePriority> Queue<K, P> {
    fn lock(&self) -> MutexGuard<'_, State<K, P>> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One whose keys are taken with these places, and whose requeues are by this clock. It takes in nothing before
    /// [`Self::open`].
    #[must_use]
    pub fn standby(places: Arc<Places<P>>, clock: Clock) -> Self {
        let state = Mutex::new(State::standby());
        Self { places, clock, state, work: Notify::new(), timer: Condvar::new() }
    }

    /// From now on keys are taken in that begin early. Returns what was noted, which is to be placed or noted again.
    #[must_use]
    pub fn open_early(&self) -> Vec<K> {
        let noted = self.lock().enter(Phase::Early);
        self.timer.notify_one();
        noted
    }

    /// From now on keys are taken in, and timers fire. Returns what was [noted](Self::note), which is to be placed.
    pub fn open(&self) -> Vec<K> {
        let noted = self.lock().enter(Phase::Open);
        self.timer.notify_one();
        noted
    }

    /// Whether all keys are taken in.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.lock().phase == Phase::Open
    }

    /// Before all keys are taken in: arms a key that rises, and remembers it if it does not begin [last](Begins::Last);
    /// of one that is gone (`None`), nothing. One that begins early is put once those are. False when all keys are taken in.
    pub fn note(&self, key: &K, placement: Option<Placement<P>>) -> bool {
        let mut state = self.lock();
        let is_first = match (state.phase, placement) {
            (Phase::Open, _) => return false,
            (Phase::Early, Some(placement)) if placement.begins == Begins::Early => {
                let is_first = state.place(key.clone(), placement, Attempt::First, Instant::now());
                self.work.notify_one();
                is_first
            }
            _ => state.note(key.clone(), placement),
        };
        drop(state);
        if is_first {
            self.timer.notify_one();
        }
        true
    }

    /// Puts a key to be worked on. A better position than it waits in moves it there.
    pub fn add(&self, key: K, position: QueuePosition<P>) {
        self.place(key, position.into());
    }

    /// Like [`Self::add`], and brings it back when it rises.
    pub fn place(&self, key: K, placement: Placement<P>) {
        if self.lock().place(key, placement, Attempt::First, Instant::now()) {
            self.timer.notify_one();
        }
        self.work.notify_one();
    }

    /// What was [noted](Self::note).
    #[must_use]
    pub fn noted(&self) -> Vec<K> {
        self.lock().noted.iter().cloned().collect()
    }

    /// How many keys wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Waits for the next key to work on, and a place for its requests. The caller must call [`Self::done`] or
    /// [`Self::wait_for`] for a key it got.
    pub async fn next(&self) -> Next<K, P> {
        loop {
            let mut freed = pin!(self.places.freed());
            freed.as_mut().enable();
            if let Some(next) = self.pop(Instant::now()) {
                return next;
            }
            tokio::select! {
                () = self.work.notified() => {}
                () = freed => {}
                () = self.look_again() => {}
            }
        }
    }

    /// Ends when it is time to look again, if anything waits.
    async fn look_again(&self) {
        if self.lock().waiting.is_empty() {
            pending::<()>().await;
        }
        sleep(LOOK_AGAIN).await;
    }

    fn pop(&self, now: Instant) -> Option<Next<K, P>> {
        self.lock().pop(&self.places, now)
    }

    /// A key has been worked on. If it was put again meanwhile, it waits now.
    pub fn done(&self, key: &K) {
        let mut state = self.lock();
        if let Some((position, attempt)) = state.ended(key) {
            state.add(key.clone(), position, attempt, Instant::now());
            self.work.notify_one();
        }
    }

    /// Work on a key goes on when a request of this operation may be sent. If the key was put again meanwhile, it is
    /// begun anew instead.
    pub fn wait_for(
        &self,
        key: &K,
        position: QueuePosition<P>,
        attempt: Attempt,
        operation: Operation,
    ) {
        let (mut state, now) = (self.lock(), Instant::now());
        match state.ended(key) {
            Some((position, attempt)) => state.add(key.clone(), position, attempt, now),
            None => state.insert(key.clone(), position, attempt, Some(operation), now),
        }
        self.work.notify_one();
    }

    /// Brings a key back when `at` has come; `None`: not any more.
    pub fn requeue_at(&self, key: &K, at: Option<Timestamp>) {
        if self.lock().requeues.set(key, at) {
            self.timer.notify_one();
        }
    }

    /// How well the time should be known for the next requeue.
    #[must_use]
    pub fn precision(&self) -> Precision {
        let state = self.lock();
        let next = state.requeues.earliest().filter(|_| state.phase != Phase::Standby);
        drop(state);
        let wait = next.and_then(|at| self.clock.until(at));
        if wait.is_some_and(|wait| wait <= SOON) { Precision::Best } else { Precision::Promised }
    }

    /// Brings a key back after `delay`; `None`: not any more.
    pub fn retry(&self, key: &K, delay: Option<Duration>) {
        if self.lock().retries.set(key, delay.map(|delay| Instant::now() + delay)) {
            self.timer.notify_one();
        }
    }

    /// Moves keys whose time has come to where `placement_of` says that they belong, until [`Self::close`]. A key
    /// that belongs nowhere (any more) is dropped.
    ///
    /// Blocks the thread that calls it, which is woken a tenth of a millisecond late; the timers of the
    /// async runtime count whole milliseconds and are one or two late.
    pub fn run_timers<W: Into<Placement<P>>>(&self, placement_of: impl Fn(&K) -> Option<W>) {
        while let Some(due) = self.due() {
            let place = |(key, attempt)| Some((placement_of(&key)?.into(), attempt, key));
            self.put(due.into_iter().filter_map(place));
        }
    }

    /// Ends [`Self::run_timers`].
    pub fn close(&self) {
        self.lock().closed = true;
        self.timer.notify_one();
    }

    /// Puts all of these, and arms those that rise, before any of them is begun.
    pub fn add_all<W: Into<Placement<P>>>(&self, placed: impl IntoIterator<Item = (W, K)>) {
        self.put(placed.into_iter().map(|(placed, key)| (placed.into(), Attempt::First, key)));
        self.timer.notify_one();
    }

    fn put(&self, placed: impl Iterator<Item = (Placement<P>, Attempt, K)>) {
        // Whoever says where a key belongs may need what the lock keeps.
        let placed: Vec<_> = placed.collect();
        let (mut state, now) = (self.lock(), Instant::now());
        for (placement, attempt, key) in placed {
            if state.phase == Phase::Early && placement.begins != Begins::Early {
                state.note(key, Some(placement));
            } else {
                state.place(key, placement, attempt, now);
            }
        }
        self.work.notify_one();
    }

    /// Waits for keys whose time has come; `None` once the queue is closed.
    fn due(&self) -> Option<Vec<(K, Attempt)>> {
        let mut state = self.lock();
        while !state.closed {
            let due = state.take_due(&self.clock);
            if !due.is_empty() {
                return Some(due);
            }
            let sleep = state.sleep(&self.clock);
            let woken = self.timer.wait_timeout(state, sleep);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

#[cfg(test)]
mod tests;
