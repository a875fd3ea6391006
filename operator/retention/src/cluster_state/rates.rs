//! How fast is deleted: at the rate of each policy, and of all together (`docs/retention.md`, R38).
//!
//! An object that is due and may go stands in the line of its policy until it is given leave. Within a line, what has been
//! due for a minute at most goes before the backlog, which begins one turn in eight; among equals the longest due goes
//! first, and one whose last deletion has failed goes last.
//!
//! Times are of a clock that nobody sets, since any moment.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use trainjob_api::time::Timestamp;
use trainjob_core::{facts::ObjectKey, queue_position::QueuePriority};
use trainjob_retention_core::uid::Uid;

use crate::key::{Key, Priority, TargetId, position, scheduled_since};

/// For how long leave may be saved up: what comes due together goes a little faster than one by one.
const BURST_SECONDS: f64 = 0.1;

/// A rate of deletions.
#[derive(Debug, Clone)]
struct Rate {
    per_second: f64,
    saved: f64,
    counted: Duration,
}

impl Rate {
    fn new(per_second: f64, now: Duration) -> Self {
        Self { per_second, saved: 1.0, counted: now }
    }

    /// How long it is until there is leave for one.
    fn wait(&mut self, now: Duration) -> Duration {
        let gained = now.saturating_sub(self.counted).as_secs_f64() * self.per_second;
        self.saved = (self.saved + gained).min((self.per_second * BURST_SECONDS).max(1.0));
        self.counted = now.max(self.counted);
        if self.saved >= 1.0 {
            return Duration::ZERO;
        }
        let missing = ((1.0 - self.saved) / self.per_second).clamp(0.0, 3_600.0);
        // Rounded up, so that who waits so long finds leave.
        Duration::from_secs_f64(missing).saturating_add(Duration::from_nanos(1))
    }

    const fn take(&mut self) {
        self.saved -= 1.0;
    }
}

/// A place in a line: since when the object is due, and which it is.
type Place = (Timestamp, TargetId, ObjectKey);

/// The objects of a policy that wait for leave.
#[derive(Debug, Default)]
struct Line {
    rate: Option<Rate>,
    waiting: BTreeSet<Place>,
}

/// All lines, and the rate of all together.
#[derive(Debug)]
pub(super) struct Rates {
    all: Option<Rate>,
    lines: BTreeMap<Uid, Line>,
    turn: u8,
}

impl Rates {
    /// So many deletions a second; `None`: no limit.
    pub(super) fn new(per_second: Option<f64>) -> Self {
        let all = per_second.map(|per_second| Rate::new(per_second, Duration::ZERO));
        Self { all, lines: BTreeMap::new(), turn: 1 }
    }

    /// The rate of a policy; `None`: it has no limit of its own.
    pub(super) fn set(&mut self, policy: &Uid, per_second: Option<f64>, now: Duration) {
        let line = self.lines.entry(policy.clone()).or_default();
        if line.rate.as_ref().map(|rate| rate.per_second) != per_second {
            line.rate = per_second.map(|per_second| Rate::new(per_second, now));
        }
    }

    /// There are no other policies any more.
    pub(super) fn retain(&mut self, policies: &BTreeSet<Uid>) {
        self.lines.retain(|policy, _| policies.contains(policy));
    }

    /// Puts an object in the line of its policy.
    pub(super) fn wait(&mut self, policy: &Uid, key: &Key, due: Timestamp) {
        let line = self.lines.entry(policy.clone()).or_default();
        line.waiting.insert((due, key.target, key.object.clone()));
    }

    /// Takes an object out of the line.
    pub(super) fn leave(&mut self, policy: &Uid, key: &Key, due: Timestamp) {
        if let Some(line) = self.lines.get_mut(policy) {
            line.waiting.remove(&(due, key.target, key.object.clone()));
        }
    }

    /// Gives leave to an object that still `waits` in the line of that policy; the instant `time` says which of them are
    /// backlog.
    ///
    /// # Errors
    ///
    /// How long it is until there is leave for one; `None` if nobody waits.
    pub(super) fn next(
        &mut self,
        time: Timestamp,
        now: Duration,
        waits: impl Fn(&Uid, &Key) -> bool,
    ) -> Result<Key, Option<Duration>> {
        loop {
            let (policy, (due, target, object)) = self.first(time, now)?;
            let key = Key { target, object };
            self.leave(&policy, &key, due);
            if waits(&policy, &key) {
                self.spend(&policy);
                return Ok(key);
            }
        }
    }

    /// Uses up leave for so many more deletions, which others wait for then.
    pub(super) fn spend_more(&mut self, policy: &Uid, count: u32) {
        let own = self.lines.get_mut(policy).and_then(|line| line.rate.as_mut());
        for rate in self.all.iter_mut().chain(own) {
            rate.saved -= f64::from(count);
        }
    }

    /// Takes back leave that was not used.
    pub(super) fn give_back(&mut self, policy: &Uid) {
        let own = self.lines.get_mut(policy).and_then(|line| line.rate.as_mut());
        for rate in self.all.iter_mut().chain(own) {
            rate.saved += 1.0;
        }
    }

    /// Uses up leave.
    fn spend(&mut self, policy: &Uid) {
        self.turn = self.turn.wrapping_add(1);
        let own = self.lines.get_mut(policy).and_then(|line| line.rate.as_mut());
        self.all.iter_mut().chain(own).for_each(Rate::take);
    }

    /// Whose turn it is.
    fn first(&mut self, time: Timestamp, now: Duration) -> Result<(Uid, Place), Option<Duration>> {
        let mut waits = self.lines.values_mut().filter(|line| !line.waiting.is_empty());
        let wait_of =
            |line: &mut Line| line.rate.as_mut().map_or(Duration::ZERO, |rate| rate.wait(now));
        let soonest = waits.by_ref().map(wait_of).min().ok_or(None)?;
        let all = self.all.as_mut().map_or(Duration::ZERO, |rate| rate.wait(now));
        let wait = soonest.max(all);
        if !wait.is_zero() {
            return Err(Some(wait));
        }
        let begins = Priority::begins(self.turn);
        let heads = self.lines.iter().filter(|(_, line)| line.may_go());
        let heads = heads.filter_map(|(policy, line)| Some((line.head(begins, time)?, policy)));
        let in_order = |place: &Place| {
            let position = position(Some(place.0), Some(time));
            (position.priority != begins, position)
        };
        let first = heads.min_by_key(|(place, policy)| (in_order(place), (*policy).clone()));
        first.map(|(place, policy)| (policy.clone(), place.clone())).ok_or(None)
    }
}

impl Line {
    fn may_go(&self) -> bool {
        self.rate.as_ref().is_none_or(|rate| rate.saved >= 1.0)
    }

    /// Who goes first in this line.
    fn head(&self, begins: Priority, time: Timestamp) -> Option<&Place> {
        let oldest = self.waiting.first();
        if begins == Priority::Backlog {
            return oldest;
        }
        let no_name = ObjectKey::new("", "");
        let scheduled = self.waiting.range((scheduled_since(time), TargetId(0), no_name)..).next();
        scheduled.or(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp(43_200);

    fn key(name: &str) -> Key {
        let object = ObjectKey::new("a", name);
        Key { target: TargetId(0), object }
    }

    /// The names of those that get leave until `end`, a second since the beginning, and when, in milliseconds.
    fn granted(rates: &mut Rates, end: u64) -> Vec<(String, u128)> {
        let (mut granted, mut now) = (Vec::new(), Duration::ZERO);
        while now < Duration::from_secs(end) {
            match rates.next(NOON, now, |_, _| true) {
                Ok(key) => granted.push((key.object.name.to_string(), now.as_millis())),
                Err(Some(wait)) => now += wait.max(Duration::from_millis(1)),
                Err(None) => break,
            }
        }
        granted
    }

    fn names(granted: &[(String, u128)]) -> Vec<&str> {
        granted.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn neither_the_rate_of_a_policy_nor_that_of_all_is_exceeded() {
        for (all, own, expected) in [
            (Some(50.0), Some(20.0), 20),
            (Some(10.0), Some(20.0), 10),
            (None, Some(5.0), 5),
            (Some(50.0), None, 50),
        ] {
            let (mut rates, policy) = (Rates::new(all), Uid::from("p"));
            rates.set(&policy, own, Duration::ZERO);
            for index in 0..1_000 {
                rates.wait(&policy, &key(&format!("{index:04}")), NOON);
            }
            let granted = granted(&mut rates, 10);
            // The first second may bring what was saved up, a tenth of a second's worth.
            let most = expected * 10 + (expected / 10).max(1);
            let least = expected * 10 - expected / 5 - 1;
            assert!((least..=most).contains(&granted.len()), "{all:?} {own:?}: {}", granted.len());
            assert!(names(&granted).is_sorted());
        }
    }

    #[test]
    fn without_limits_nobody_waits() {
        let (mut rates, policy) = (Rates::new(None), Uid::from("p"));
        for index in 0..100 {
            rates.wait(&policy, &key(&index.to_string()), NOON);
        }
        let granted = granted(&mut rates, 1);
        assert_eq!(granted.len(), 100);
        assert!(granted.iter().all(|(_, at)| *at == 0));
    }

    #[test]
    fn what_is_scheduled_goes_before_the_backlog_which_begins_one_turn_in_eight() {
        let (mut rates, policy) = (Rates::new(None), Uid::from("p"));
        for index in 0..20 {
            rates.wait(&policy, &key(&format!("old {index:02}")), NOON.plus(-3_600 + index));
            rates.wait(&policy, &key(&format!("new {index:02}")), NOON.plus(-20 + index));
        }
        let granted = granted(&mut rates, 1);
        let names = names(&granted);
        let old = |range: &[&str]| range.iter().filter(|name| name.starts_with("old")).count();
        assert_eq!((old(&names[..8]), old(&names[8..16]), old(&names[23..])), (1, 1, 17));
        assert_eq!(&names[..3], ["new 00", "new 01", "new 02"]);
    }

    #[test]
    fn a_policy_without_tokens_does_not_hold_up_another() {
        let (mut rates, slow, fast) = (Rates::new(None), Uid::from("a"), Uid::from("b"));
        rates.set(&slow, Some(0.5), Duration::ZERO);
        rates.set(&fast, Some(100.0), Duration::ZERO);
        for index in 0..50 {
            rates.wait(&slow, &key(&format!("slow {index:02}")), NOON.plus(-9));
            rates.wait(&fast, &key(&format!("fast {index:02}")), NOON);
        }
        let granted = granted(&mut rates, 1);
        assert_eq!(names(&granted).iter().filter(|name| name.starts_with("fast")).count(), 50);
        assert_eq!(granted.len(), 51);
    }

    #[test]
    fn who_left_the_line_gets_no_leave() {
        let (mut rates, policy) = (Rates::new(None), Uid::from("p"));
        rates.wait(&policy, &key("a"), NOON);
        rates.wait(&policy, &key("b"), NOON);
        rates.leave(&policy, &key("a"), NOON);
        assert_eq!(rates.next(NOON, Duration::ZERO, |_, _| true), Ok(key("b")));
        assert_eq!(rates.next(NOON, Duration::ZERO, |_, _| true), Err(None));
        rates.wait(&policy, &key("c"), NOON);
        rates.retain(&BTreeSet::new());
        assert_eq!(rates.next(NOON, Duration::ZERO, |_, _| true), Err(None));
    }
}
