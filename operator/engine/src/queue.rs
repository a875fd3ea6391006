//! Which job is worked on next: priorities, one worker a key at a time, and timers.
//!
//! Work waits in three [priorities](trainjob_core::priority), within a priority by the instant it was due, and then
//! in the order in which it came. A key waits at most once; one that is being worked on waits until that
//! is done.
//!
//! Two kinds of timers bring keys back: requeues at an instant of the wall clock, which lifecycle rules
//! ask for, and retries after a while. All of them are entries of two heaps, so that a hundred thousand
//! of them cost no task each.
//!
//! Before there is somebody who works, nothing is taken in: on a replica that waits for weeks, what has
//! come and gone would pile up. Whoever begins to work puts every job that there is then.
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
//! use trainjob_api::time::Timestamp;
//! use trainjob_core::{facts::ObjectKey, priority::{Priority, QueuePosition}};
//! use trainjob_engine::queue::Queue;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let key = |name: &str| ObjectKey::of(&ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() });
//! let queue = Queue::default();
//! queue.add(key("new"), QueuePosition::LIVE);
//! queue.add(key("late"), QueuePosition { priority: Priority::Stop, due: Timestamp(1_000) });
//! // A deadline that is due goes first.
//! let next = queue.next(Priority::Cleanup).await.ok_or("there is work")?;
//! assert_eq!((&next.key, next.priority), (&key("late"), Priority::Stop));
//! // Whatever comes of the key meanwhile waits until this worker is done with it.
//! queue.done(&next.key);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod numbers;
mod timers;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use trainjob_api::time::Timestamp;
use trainjob_core::{
    facts::ObjectKey,
    priority::{Priority, QueuePosition},
};

use self::timers::Timers;
use crate::clock;

/// The longest sleep between two looks at the wall clock. A step of the clock is noticed this late.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The queue, shared by watches, workers and the timer thread.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    work: Notify,
    timer: Condvar,
}

#[derive(Debug, Default)]
struct State {
    priorities: Priorities,
    waiting: HashMap<ObjectKey, Ticket>,
    running: HashSet<ObjectKey>,
    again: HashMap<ObjectKey, QueuePosition>,
    requeues: Timers<Timestamp>,
    retries: Timers<Instant>,
    turn: u8,
    tickets: u64,
    standby: bool,
    closed: bool,
}

/// A position in the queue and when it was taken.
type Ticket = (QueuePosition, u64);

/// What is worked on next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The job.
    pub key: ObjectKey,
    /// The priority it waited with.
    pub priority: Priority,
    /// For how long.
    pub waited: Duration,
}

#[derive(Debug, Default)]
struct Priorities {
    stop: Waiters,
    live: Waiters,
    cleanup: Waiters,
}

/// Keys by their tickets, and since when they wait with this priority.
type Waiters = BTreeMap<Ticket, (ObjectKey, Instant)>;

impl Priorities {
    const fn of(&mut self, priority: Priority) -> &mut Waiters {
        match priority {
            Priority::Stop => &mut self.stop,
            Priority::Live => &mut self.live,
            Priority::Cleanup => &mut self.cleanup,
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that takes in nothing before [`Self::open`].
    #[must_use]
    pub fn standby() -> Self {
        let state = State { standby: true, ..State::default() };
        Self { state: Mutex::new(state), ..Self::default() }
    }

    /// From now on keys are taken in.
    pub fn open(&self) {
        self.lock().standby = false;
    }

    /// Puts a key to be worked on. A better position than it waits in moves it there.
    pub fn add(&self, key: ObjectKey, position: QueuePosition) {
        self.lock().add(key, position, Instant::now());
        self.work.notify_one();
    }

    /// The next key to work on, of no worse priority than `worst`. `None` when there is none yet and the
    /// caller should look again: at the queue, and at what `worst` is now. The caller must call
    /// [`Self::done`] for a key it got.
    pub async fn next(&self, worst: Priority) -> Option<Next> {
        let next = self.lock().pop(worst);
        if next.is_none() {
            self.work.notified().await;
        }
        next
    }

    /// A key has been worked on. If it was put again meanwhile, it waits now.
    pub fn done(&self, key: &ObjectKey) {
        let mut state = self.lock();
        state.running.remove(key);
        if let Some(position) = state.again.remove(key) {
            state.add(key.clone(), position, Instant::now());
        }
        self.work.notify_one();
    }

    /// Brings a key back when the wall clock shows `at`; `None`: not any more.
    pub fn requeue_at(&self, key: &ObjectKey, at: Option<Timestamp>) {
        if self.lock().requeues.set(key, at) {
            self.timer.notify_one();
        }
    }

    /// Brings a key back after `delay`; `None`: not any more.
    pub fn retry(&self, key: &ObjectKey, delay: Option<Duration>) {
        if self.lock().retries.set(key, delay.map(|delay| Instant::now() + delay)) {
            self.timer.notify_one();
        }
    }

    /// Moves keys whose time has come to the positions that `position_of` names, until [`Self::close`]. A key
    /// that has no position (any more) is dropped.
    ///
    /// Blocks the thread that calls it, which is woken a tenth of a millisecond late; the timers of the
    /// async runtime count whole milliseconds and are one or two late.
    pub fn run_timers(&self, position_of: impl Fn(&ObjectKey) -> Option<QueuePosition>) {
        while let Some(due) = self.due() {
            let position = |key| Some((position_of(&key)?, key));
            self.add_all(due.into_iter().filter_map(position).collect());
        }
    }

    /// Ends [`Self::run_timers`].
    pub fn close(&self) {
        self.lock().closed = true;
        self.timer.notify_one();
    }

    /// Puts what is due at the same instant, before any of it is begun.
    pub fn add_all(&self, positioned: Vec<(QueuePosition, ObjectKey)>) {
        let (mut state, now) = (self.lock(), Instant::now());
        for (position, key) in positioned {
            state.add(key, position, now);
        }
        self.work.notify_one();
    }

    /// Waits for keys whose time has come; `None` once the queue is closed.
    fn due(&self) -> Option<Vec<ObjectKey>> {
        let mut state = self.lock();
        while !state.closed {
            let due = state.take_due();
            if !due.is_empty() {
                return Some(due);
            }
            let sleep = state.sleep();
            let woken = self.timer.wait_timeout(state, sleep);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

impl State {
    /// The keys whose time has come.
    fn take_due(&mut self) -> Vec<ObjectKey> {
        let mut due = Vec::new();
        let (wall, monotonic) = (clock::now(), Instant::now());
        while let Some(key) = self.requeues.take(wall) {
            due.push(key);
        }
        while let Some(key) = self.retries.take(monotonic) {
            due.push(key);
        }
        due
    }

    /// How long to sleep until the time of the next key may have come.
    fn sleep(&mut self) -> Duration {
        let now = Instant::now();
        let requeue_at = self.requeues.earliest().map(clock::until);
        let retry = self.retries.earliest().map(|at| at.saturating_duration_since(now));
        requeue_at.into_iter().chain(retry).chain([LONGEST_SLEEP]).min().unwrap_or(LONGEST_SLEEP)
    }

    fn add(&mut self, key: ObjectKey, position: QueuePosition, now: Instant) {
        if self.standby {
            return;
        }
        if self.running.contains(&key) {
            let again = self.again.entry(key).or_insert(position);
            *again = position.min(*again);
            return;
        }
        if let Some(ticket) = self.waiting.get(&key).copied() {
            if ticket.0 <= position {
                return;
            }
            self.priorities.of(ticket.0.priority).remove(&ticket);
        }
        self.tickets += 1;
        let ticket = (position, self.tickets);
        self.waiting.insert(key.clone(), ticket);
        self.priorities.of(position.priority).insert(ticket, (key, now));
    }

    fn pop(&mut self, worst: Priority) -> Option<Next> {
        let order = Priority::order(self.turn).into_iter().filter(|priority| *priority <= worst);
        for priority in order {
            if let Some((_, (key, since))) = self.priorities.of(priority).pop_first() {
                self.turn = self.turn.wrapping_add(1);
                self.waiting.remove(&key);
                self.running.insert(key.clone());
                return Some(Next { key, priority, waited: since.elapsed() });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
