//! Which job is worked on next: lanes, one worker a key at a time, and timers.
//!
//! Work waits in three [lanes](trainjob_core::lane), within a lane by the instant it was due, and then
//! in the order in which it came. A key waits at most once; one that is being worked on waits until that
//! is done.
//!
//! Two kinds of timers bring keys back: alarms at an instant of the wall clock, which lifecycle rules
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
    lane::{Lane, Place},
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
    lanes: Lanes,
    waiting: HashMap<ObjectKey, Ticket>,
    running: HashSet<ObjectKey>,
    again: HashMap<ObjectKey, Place>,
    alarms: Timers<Timestamp>,
    retries: Timers<Instant>,
    turn: u8,
    tickets: u64,
    standby: bool,
    closed: bool,
}

/// A place in the queue and when it was taken.
type Ticket = (Place, u64);

/// What is worked on next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The job.
    pub key: ObjectKey,
    /// The lane it waited in.
    pub lane: Lane,
    /// For how long.
    pub waited: Duration,
}

#[derive(Debug, Default)]
struct Lanes {
    stop: Waiters,
    live: Waiters,
    cleanup: Waiters,
}

/// Keys by their tickets, and since when they wait in this lane.
type Waiters = BTreeMap<Ticket, (ObjectKey, Instant)>;

impl Lanes {
    const fn of(&mut self, lane: Lane) -> &mut Waiters {
        match lane {
            Lane::Stop => &mut self.stop,
            Lane::Live => &mut self.live,
            Lane::Cleanup => &mut self.cleanup,
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

    /// Puts a key to be worked on. A better place than it waits in moves it there.
    pub fn add(&self, key: ObjectKey, place: Place) {
        self.lock().add(key, place, Instant::now());
        self.work.notify_one();
    }

    /// The next key to work on, of no worse lane than `worst`. `None` when there is none yet and the
    /// caller should look again: at the queue, and at what `worst` is now. The caller must call
    /// [`Self::done`] for a key it got.
    pub async fn next(&self, worst: Lane) -> Option<Next> {
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
        if let Some(place) = state.again.remove(key) {
            state.add(key.clone(), place, Instant::now());
        }
        self.work.notify_one();
    }

    /// Brings a key back when the wall clock shows `at`; `None`: not any more.
    pub fn alarm(&self, key: &ObjectKey, at: Option<Timestamp>) {
        if self.lock().alarms.set(key, at) {
            self.timer.notify_one();
        }
    }

    /// Brings a key back after `delay`; `None`: not any more.
    pub fn retry(&self, key: &ObjectKey, delay: Option<Duration>) {
        if self.lock().retries.set(key, delay.map(|delay| Instant::now() + delay)) {
            self.timer.notify_one();
        }
    }

    /// Moves keys whose time has come to the places that `place_of` names, until [`Self::close`]. A key
    /// that has no place (any more) is dropped.
    ///
    /// Blocks the thread that calls it, which is woken a tenth of a millisecond late; the timers of the
    /// async runtime count whole milliseconds and are one or two late.
    pub fn run_timers(&self, place_of: impl Fn(&ObjectKey) -> Option<Place>) {
        while let Some(due) = self.due() {
            let place = |key| Some((place_of(&key)?, key));
            self.add_all(due.into_iter().filter_map(place).collect());
        }
    }

    /// Ends [`Self::run_timers`].
    pub fn close(&self) {
        self.lock().closed = true;
        self.timer.notify_one();
    }

    /// Puts what is due at the same instant, before any of it is begun.
    pub fn add_all(&self, placed: Vec<(Place, ObjectKey)>) {
        let (mut state, now) = (self.lock(), Instant::now());
        for (place, key) in placed {
            state.add(key, place, now);
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
        while let Some(key) = self.alarms.take(wall) {
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
        let alarm = self.alarms.earliest().map(clock::until);
        let retry = self.retries.earliest().map(|at| at.saturating_duration_since(now));
        alarm.into_iter().chain(retry).chain([LONGEST_SLEEP]).min().unwrap_or(LONGEST_SLEEP)
    }

    fn add(&mut self, key: ObjectKey, place: Place, now: Instant) {
        if self.standby {
            return;
        }
        if self.running.contains(&key) {
            let again = self.again.entry(key).or_insert(place);
            *again = place.min(*again);
            return;
        }
        if let Some(ticket) = self.waiting.get(&key).copied() {
            if ticket.0 <= place {
                return;
            }
            self.lanes.of(ticket.0.lane).remove(&ticket);
        }
        self.tickets += 1;
        let ticket = (place, self.tickets);
        self.waiting.insert(key.clone(), ticket);
        self.lanes.of(place.lane).insert(ticket, (key, now));
    }

    fn pop(&mut self, worst: Lane) -> Option<Next> {
        let order = Lane::order(self.turn).into_iter().filter(|lane| *lane <= worst);
        for lane in order {
            if let Some((_, (key, since))) = self.lanes.of(lane).pop_first() {
                self.turn = self.turn.wrapping_add(1);
                self.waiting.remove(&key);
                self.running.insert(key.clone());
                return Some(Next { key, lane, waited: since.elapsed() });
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

    fn drain(queue: &Queue) -> Vec<(String, Lane)> {
        let next = || queue.lock().pop(Lane::Cleanup);
        std::iter::from_fn(next).map(|next| (next.key.name.to_string(), next.lane)).collect()
    }

    const fn at(lane: Lane, due: i64) -> Place {
        Place { lane, due: Timestamp(due) }
    }

    #[test]
    fn lanes_go_in_order_and_the_last_has_one_turn_in_eight() {
        let queue = Queue::default();
        for n in 0..20 {
            queue.add(key(&format!("cleanup {n}")), at(Lane::Cleanup, 0));
        }
        for n in 0..20 {
            queue.add(key(&format!("live {n}")), Place::LIVE);
        }
        queue.add(key("stop"), at(Lane::Stop, 0));
        let order = drain(&queue);
        let lanes: Vec<_> = order.iter().map(|(_, lane)| *lane).collect();
        let expected = [Lane::Cleanup, Lane::Stop, Lane::Live, Lane::Live];
        assert_eq!(lanes[..4], expected);
        let share = lanes[..24].iter().filter(|lane| **lane == Lane::Cleanup).count();
        assert_eq!(share, 3, "{order:?}");
        assert_eq!(order.len(), 41);
    }

    #[test]
    fn on_standby_nothing_is_taken_in_and_nothing_takes_room() {
        let queue = Queue::standby();
        queue.add(key("a"), at(Lane::Stop, 0));
        queue.add_all(vec![(Place::LIVE, key("b"))]);
        assert!(queue.lock().waiting.is_empty());
        assert_eq!(drain(&queue), vec![]);
        queue.open();
        queue.add(key("c"), Place::LIVE);
        assert_eq!(drain(&queue), vec![("c".to_owned(), Lane::Live)]);
    }

    #[test]
    fn a_key_waits_once_in_the_best_lane_it_was_put_in() {
        let queue = Queue::default();
        for lane in [Lane::Cleanup, Lane::Live, Lane::Stop, Lane::Cleanup] {
            queue.add(key("a"), at(lane, 5));
        }
        assert_eq!(drain(&queue), vec![("a".to_owned(), Lane::Stop)]);
    }

    #[test]
    fn a_key_that_is_worked_on_waits_until_that_is_done() {
        let queue = Queue::default();
        queue.add(key("a"), Place::LIVE);
        assert!(queue.lock().pop(Lane::Cleanup).is_some());
        queue.add(key("a"), at(Lane::Cleanup, 0));
        queue.add(key("a"), at(Lane::Stop, 0));
        assert_eq!(drain(&queue), vec![]);
        queue.done(&key("a"));
        assert_eq!(drain(&queue), vec![("a".to_owned(), Lane::Stop)]);
    }

    #[test]
    fn what_was_due_first_goes_first_and_live_work_in_the_order_it_came() {
        let queue = Queue::default();
        for (name, due) in [("second", 20), ("third", 30), ("first", 10)] {
            queue.add(key(name), at(Lane::Cleanup, due));
        }
        for name in ["z", "a"] {
            queue.add(key(name), Place::LIVE);
        }
        queue.lock().turn = 1;
        let order: Vec<_> = drain(&queue).into_iter().map(|(name, _)| name).collect();
        assert_eq!(order, ["z", "a", "first", "second", "third"]);
    }

    #[test]
    fn a_worse_lane_than_asked_for_is_left_alone() {
        let queue = Queue::default();
        queue.add(key("live"), Place::LIVE);
        assert_eq!(queue.lock().pop(Lane::Stop), None);
        assert!(queue.lock().pop(Lane::Live).is_some());
    }

    #[test]
    fn a_timer_counts_only_as_last_set() {
        let queue = Queue::default();
        let past = Timestamp(1);
        queue.alarm(&key("moved"), Some(past));
        queue.alarm(&key("moved"), Some(Timestamp(i64::MAX)));
        queue.alarm(&key("due"), Some(past));
        queue.alarm(&key("dropped"), Some(past));
        queue.alarm(&key("dropped"), None);
        assert_eq!(queue.due(), Some(vec![key("due")]));
        assert_eq!(queue.lock().sleep(), LONGEST_SLEEP);
        assert!(queue.lock().take_due().is_empty());
    }

    #[test]
    fn timers_that_are_moved_again_and_again_take_no_room() {
        let queue = Queue::default();
        for at in 0..100_000 {
            queue.alarm(&key("a"), Some(Timestamp(i64::MAX - at)));
        }
        assert!(queue.lock().alarms.heap.len() <= SWEEP_FROM + 1);
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
                queue.run_timers(|key| (&*key.name != "gone").then_some(at(Lane::Cleanup, 1)));
            });
            queue.alarm(&key("later"), Some(Timestamp(i64::MAX)));
            queue.alarm(&key("gone"), Some(Timestamp(1)));
            queue.retry(&key("due"), Some(Duration::from_millis(20)));
            let mut moved = Vec::new();
            while moved.is_empty() {
                std::thread::yield_now();
                moved = drain(&queue);
            }
            queue.close();
            assert_eq!(moved, vec![("due".to_owned(), Lane::Cleanup)]);
        });
    }
}
