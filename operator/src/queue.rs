//! Which job is worked on next: lanes, one worker a key at a time, and timers.
//!
//! Work waits in three [lanes](trainjob_core::lane), strictly in their order, except that every eighth
//! turn belongs to the last, which could starve otherwise. A key waits at most once; one that is being
//! worked on waits until that is done.
//!
//! Two kinds of timers bring keys back: alarms at an instant of the wall clock, which lifecycle rules
//! ask for, and retries after a while. All of them are entries of two heaps, so that a hundred thousand
//! of them cost a few bytes each. An entry counts only while it is the one its key is armed with.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use trainjob_api::time::Timestamp;
use trainjob_core::{facts::ObjectKey, lane::Lane};

use crate::clock;

/// Of so many turns, one belongs to the last lane even when the others have work.
const TURNS_PER_CLEANUP: u8 = 8;

/// The longest sleep between two looks at the wall clock. A step of the clock is noticed this late.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A heap of timers is swept when it is at least this long and mostly of no use.
const SWEEP_FROM: usize = 1_024;

/// The queue, shared by watches, workers and the timer task.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    work: Notify,
    timer: Notify,
}

#[derive(Debug, Default)]
struct State {
    lanes: Lanes,
    waiting: HashMap<ObjectKey, Lane>,
    running: HashSet<ObjectKey>,
    again: HashMap<ObjectKey, Lane>,
    alarms: Timers<Timestamp>,
    retries: Timers<Instant>,
    turn: u8,
}

#[derive(Debug, Default)]
struct Lanes {
    stop: VecDeque<ObjectKey>,
    live: VecDeque<ObjectKey>,
    cleanup: VecDeque<ObjectKey>,
}

impl Lanes {
    const fn of(&mut self, lane: Lane) -> &mut VecDeque<ObjectKey> {
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
    /// Arms a key, in place of what it was armed with.
    fn set(&mut self, key: &ObjectKey, at: Option<At>) {
        match at {
            Some(at) if self.armed.get(key) != Some(&at) => {
                self.armed.insert(key.clone(), at);
                self.heap.push(Reverse((at, key.clone())));
                self.sweep();
            }
            Some(_) => {}
            None => {
                self.armed.remove(key);
            }
        }
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

    /// Puts a key to be worked on. A better lane than it waits in moves it there.
    pub fn add(&self, key: ObjectKey, lane: Lane) {
        self.lock().add(key, lane);
        self.work.notify_one();
    }

    /// The next key to work on; waits until there is one. The caller must call [`Self::done`] for it.
    pub async fn next(&self) -> (ObjectKey, Lane) {
        loop {
            if let Some(next) = self.lock().pop() {
                return next;
            }
            self.work.notified().await;
        }
    }

    /// A key has been worked on. If it was put again meanwhile, it waits now.
    pub fn done(&self, key: &ObjectKey) {
        let mut state = self.lock();
        state.running.remove(key);
        if let Some(lane) = state.again.remove(key) {
            state.add(key.clone(), lane);
            self.work.notify_one();
        }
    }

    /// Brings a key back when the wall clock shows `at`; `None`: not any more.
    pub fn alarm(&self, key: &ObjectKey, at: Option<Timestamp>) {
        self.lock().alarms.set(key, at);
        self.timer.notify_one();
    }

    /// Brings a key back after `delay`; `None`: not any more.
    pub fn retry(&self, key: &ObjectKey, delay: Option<Duration>) {
        self.lock().retries.set(key, delay.map(|delay| Instant::now() + delay));
        self.timer.notify_one();
    }

    /// How many keys wait or are being worked on.
    #[must_use]
    pub fn busy(&self) -> usize {
        let state = self.lock();
        state.waiting.len() + state.running.len()
    }

    /// Moves keys whose time has come into the lanes that `lane_of` names; never returns. A key that
    /// has no lane (any more) is dropped.
    pub async fn run_timers(&self, lane_of: impl Fn(&ObjectKey) -> Option<Lane>) {
        loop {
            let (due, sleep) = self.due();
            for key in due {
                if let Some(lane) = lane_of(&key) {
                    self.add(key, lane);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(sleep) => {}
                () = self.timer.notified() => {}
            }
        }
    }

    /// The keys whose time has come, and how long to sleep until that of the next may have.
    fn due(&self) -> (Vec<ObjectKey>, Duration) {
        let mut state = self.lock();
        let mut due = Vec::new();
        let (wall, monotonic) = (clock::now(), Instant::now());
        while let Some(key) = state.alarms.take(wall) {
            due.push(key);
        }
        while let Some(key) = state.retries.take(monotonic) {
            due.push(key);
        }
        let alarm = state.alarms.earliest().map(clock::until);
        let retry = state.retries.earliest().map(|at| at.saturating_duration_since(monotonic));
        (due, alarm.into_iter().chain(retry).chain([LONGEST_SLEEP]).min().unwrap_or(LONGEST_SLEEP))
    }
}

impl State {
    fn add(&mut self, key: ObjectKey, lane: Lane) {
        if self.running.contains(&key) {
            let again = self.again.entry(key).or_insert(lane);
            *again = lane.min(*again);
            return;
        }
        match self.waiting.get(&key) {
            Some(present) if *present <= lane => {}
            // Its place in the worse lane stays behind and is passed over when its turn comes.
            _ => {
                self.waiting.insert(key.clone(), lane);
                self.lanes.of(lane).push_back(key);
            }
        }
    }

    fn pop(&mut self) -> Option<(ObjectKey, Lane)> {
        self.turn = (self.turn + 1) % TURNS_PER_CLEANUP;
        let cleanup_first = [Lane::Cleanup, Lane::Stop, Lane::Live];
        let order = if self.turn == 0 { cleanup_first } else { Lane::ALL };
        order.into_iter().find_map(|lane| self.pop_from(lane).map(|key| (key, lane)))
    }

    fn pop_from(&mut self, lane: Lane) -> Option<ObjectKey> {
        while let Some(key) = self.lanes.of(lane).pop_front() {
            if self.waiting.get(&key) == Some(&lane) {
                self.waiting.remove(&key);
                self.running.insert(key.clone());
                return Some(key);
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
        std::iter::from_fn(|| queue.lock().pop()).map(|(key, lane)| (key.name, lane)).collect()
    }

    #[test]
    fn lanes_go_in_order_and_the_last_has_one_turn_in_eight() {
        let queue = Queue::default();
        for n in 0..20 {
            queue.add(key(&format!("cleanup {n}")), Lane::Cleanup);
        }
        for n in 0..20 {
            queue.add(key(&format!("live {n}")), Lane::Live);
        }
        queue.add(key("stop"), Lane::Stop);
        let order = drain(&queue);
        assert_eq!(order[0].0, "stop");
        let first = &order[..21];
        let share = first.iter().filter(|(_, lane)| *lane == Lane::Cleanup).count();
        assert_eq!(share, 2, "{first:?}");
        assert_eq!(order.len(), 41);
    }

    #[test]
    fn a_key_waits_once_in_the_best_lane_it_was_put_in() {
        let queue = Queue::default();
        for lane in [Lane::Cleanup, Lane::Live, Lane::Stop, Lane::Cleanup] {
            queue.add(key("a"), lane);
        }
        assert_eq!(drain(&queue), vec![("a".to_owned(), Lane::Stop)]);
    }

    #[test]
    fn a_key_that_is_worked_on_waits_until_that_is_done() {
        let queue = Queue::default();
        queue.add(key("a"), Lane::Live);
        assert!(queue.lock().pop().is_some());
        queue.add(key("a"), Lane::Cleanup);
        queue.add(key("a"), Lane::Stop);
        assert_eq!(drain(&queue), vec![]);
        queue.done(&key("a"));
        assert_eq!(drain(&queue), vec![("a".to_owned(), Lane::Stop)]);
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
        let (due, sleep) = queue.due();
        assert_eq!(due, vec![key("due")]);
        assert_eq!(sleep, LONGEST_SLEEP);
        assert!(queue.due().0.is_empty());
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
        let (due, sleep) = queue.due();
        assert!(due.is_empty());
        assert!(sleep <= Duration::from_millis(50), "{sleep:?}");
    }
}
