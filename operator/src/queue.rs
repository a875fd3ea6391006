//! Which job is worked on next: priorities, one worker a key at a time, and timers.
//!
//! Work waits in three [priorities](trainjob_core::priority), within a priority by the instant it was due, and then
//! in the order in which it came. A key waits at most once; one that is being worked on waits until that
//! is done.
//!
//! Two kinds of timers bring keys back: requeues at an instant of the wall clock, which lifecycle rules
//! ask for, and retries after a while. All of them are entries of two heaps, so that a hundred thousand
//! of them cost no task each. An entry counts only while it is the one its key is armed with.
//!
//! Before there is somebody who works, nothing is taken in: on a replica that waits for weeks, what has
//! come and gone would pile up. Whoever begins to work puts every job that there is then.

pub mod numbers;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap, HashSet},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use trainjob_api::time::Timestamp;
use trainjob_core::{
    facts::ObjectKey,
    priority::{Priority, QueuePosition},
};

use crate::clock;

/// The longest sleep between two looks at the wall clock. A step of the clock is noticed this late.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A heap of timers is swept when it is at least this long and mostly of no use.
const SWEEP_FROM: usize = 1_024;

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

/// Armed timers of one kind.
#[derive(Debug)]
struct Timers<At> {
    heap: BinaryHeap<Reverse<(At, ObjectKey)>>,
    armed: HashMap<ObjectKey, At>,
}

impl<At> Default for Timers<At>
where
    At: Ord,
{
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), armed: HashMap::new() }
    }
}

impl<At: Ord + Copy> Timers<At> {
    /// Arms a key, in place of what it was armed with. True when that is before all others.
    fn set(&mut self, key: &ObjectKey, at: Option<At>) -> bool {
        let Some(at) = at else {
            self.armed.remove(key);
            return false;
        };
        if self.armed.get(key) == Some(&at) {
            return false;
        }
        let first = self.heap.peek().is_none_or(|Reverse((first, _))| at < *first);
        self.armed.insert(key.clone(), at);
        self.heap.push(Reverse((at, key.clone())));
        self.sweep();
        first
    }

    /// Drops entries that do not count any more once they are most: they would stay until their time.
    fn sweep(&mut self) {
        if self.heap.len() > SWEEP_FROM && self.heap.len() > 2 * self.armed.len() {
            let armed = &self.armed;
            self.heap.retain(|Reverse((at, key))| armed.get(key) == Some(at));
        }
    }

    /// The earliest armed instant.
    fn earliest(&mut self) -> Option<At> {
        loop {
            let Reverse((at, key)) = self.heap.peek()?;
            if self.armed.get(key) == Some(at) {
                return Some(*at);
            }
            self.heap.pop();
        }
    }

    /// Takes a key whose instant has come.
    fn take(&mut self, now: At) -> Option<ObjectKey> {
        if self.earliest()? > now {
            return None;
        }
        let Reverse((_, key)) = self.heap.pop()?;
        self.armed.remove(&key);
        Some(key)
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
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: "ns".into(), name: name.into() }
    }

    fn drain(queue: &Queue) -> Vec<(String, Priority)> {
        let next = || queue.lock().pop(Priority::Cleanup);
        std::iter::from_fn(next).map(|next| (next.key.name.to_string(), next.priority)).collect()
    }

    const fn at(priority: Priority, due: i64) -> QueuePosition {
        QueuePosition { priority, due: Timestamp(due) }
    }

    #[test]
    fn lanes_go_in_order_and_the_last_has_one_turn_in_eight() {
        let queue = Queue::default();
        for n in 0..20 {
            queue.add(key(&format!("cleanup {n}")), at(Priority::Cleanup, 0));
        }
        for n in 0..20 {
            queue.add(key(&format!("live {n}")), QueuePosition::LIVE);
        }
        queue.add(key("stop"), at(Priority::Stop, 0));
        let order = drain(&queue);
        let priorities: Vec<_> = order.iter().map(|(_, priority)| *priority).collect();
        let expected = [Priority::Cleanup, Priority::Stop, Priority::Live, Priority::Live];
        assert_eq!(priorities[..4], expected);
        let share =
            priorities[..24].iter().filter(|priority| **priority == Priority::Cleanup).count();
        assert_eq!(share, 3, "{order:?}");
        assert_eq!(order.len(), 41);
    }

    #[test]
    fn on_standby_nothing_is_taken_in_and_nothing_takes_room() {
        let queue = Queue::standby();
        queue.add(key("a"), at(Priority::Stop, 0));
        queue.add_all(vec![(QueuePosition::LIVE, key("b"))]);
        assert!(queue.lock().waiting.is_empty());
        assert_eq!(drain(&queue), vec![]);
        queue.open();
        queue.add(key("c"), QueuePosition::LIVE);
        assert_eq!(drain(&queue), vec![("c".to_owned(), Priority::Live)]);
    }

    #[test]
    fn a_key_waits_once_in_the_best_lane_it_was_put_in() {
        let queue = Queue::default();
        for priority in [Priority::Cleanup, Priority::Live, Priority::Stop, Priority::Cleanup] {
            queue.add(key("a"), at(priority, 5));
        }
        assert_eq!(drain(&queue), vec![("a".to_owned(), Priority::Stop)]);
    }

    #[test]
    fn a_key_that_is_worked_on_waits_until_that_is_done() {
        let queue = Queue::default();
        queue.add(key("a"), QueuePosition::LIVE);
        assert!(queue.lock().pop(Priority::Cleanup).is_some());
        queue.add(key("a"), at(Priority::Cleanup, 0));
        queue.add(key("a"), at(Priority::Stop, 0));
        assert_eq!(drain(&queue), vec![]);
        queue.done(&key("a"));
        assert_eq!(drain(&queue), vec![("a".to_owned(), Priority::Stop)]);
    }

    #[test]
    fn what_was_due_first_goes_first_and_live_work_in_the_order_it_came() {
        let queue = Queue::default();
        for (name, due) in [("second", 20), ("third", 30), ("first", 10)] {
            queue.add(key(name), at(Priority::Cleanup, due));
        }
        for name in ["z", "a"] {
            queue.add(key(name), QueuePosition::LIVE);
        }
        queue.lock().turn = 1;
        let order: Vec<_> = drain(&queue).into_iter().map(|(name, _)| name).collect();
        assert_eq!(order, ["z", "a", "first", "second", "third"]);
    }

    #[test]
    fn a_worse_lane_than_asked_for_is_left_alone() {
        let queue = Queue::default();
        queue.add(key("live"), QueuePosition::LIVE);
        assert_eq!(queue.lock().pop(Priority::Stop), None);
        assert!(queue.lock().pop(Priority::Live).is_some());
    }

    #[test]
    fn a_timer_counts_only_as_last_set() {
        let queue = Queue::default();
        let past = Timestamp(1);
        queue.requeue_at(&key("moved"), Some(past));
        queue.requeue_at(&key("moved"), Some(Timestamp(i64::MAX)));
        queue.requeue_at(&key("due"), Some(past));
        queue.requeue_at(&key("dropped"), Some(past));
        queue.requeue_at(&key("dropped"), None);
        assert_eq!(queue.due(), Some(vec![key("due")]));
        assert_eq!(queue.lock().sleep(), LONGEST_SLEEP);
        assert!(queue.lock().take_due().is_empty());
    }

    #[test]
    fn timers_that_are_moved_again_and_again_take_no_room() {
        let queue = Queue::default();
        for at in 0..100_000 {
            queue.requeue_at(&key("a"), Some(Timestamp(i64::MAX - at)));
        }
        assert!(queue.lock().requeues.heap.len() <= SWEEP_FROM + 1);
    }

    #[test]
    fn the_sleep_ends_with_the_earliest_timer() {
        let queue = Queue::default();
        queue.retry(&key("late"), Some(Duration::from_secs(90)));
        queue.retry(&key("early"), Some(Duration::from_millis(50)));
        assert!(queue.lock().take_due().is_empty());
        let sleep = queue.lock().sleep();
        assert!(sleep <= Duration::from_millis(50), "{sleep:?}");
    }

    #[test]
    fn what_comes_due_is_put_in_its_place_until_the_queue_is_closed() {
        let queue = Queue::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                queue.run_timers(|key| (&*key.name != "gone").then_some(at(Priority::Cleanup, 1)));
            });
            queue.requeue_at(&key("later"), Some(Timestamp(i64::MAX)));
            queue.requeue_at(&key("gone"), Some(Timestamp(1)));
            queue.retry(&key("due"), Some(Duration::from_millis(20)));
            let mut moved = Vec::new();
            while moved.is_empty() {
                std::thread::yield_now();
                moved = drain(&queue);
            }
            queue.close();
            assert_eq!(moved, vec![("due".to_owned(), Priority::Cleanup)]);
        });
    }
}
