//! What all answers say together.
//!
//! As long as answers agree, what is known is their intersection, which grows by the drift of the clocks until the
//! next answer. Answers that no clock can have given, with those before, are of several API servers whose clocks
//! differ, or of one whose clock was set. Which of them is right nobody can tell. So each kind of answer is kept as
//! an opinion of its own, until no answer has agreed with it alone for [`MEMORY`], and the estimate reaches from the
//! first opinion to the last: its low end is never later than any API server's clock. Clocks that differ by less than
//! single answers tell are noticed only when their answers contradict each other. An answer that agrees with several
//! opinions changes none: if it counted for all of them, none would be forgotten, and all would grow wider by the hour.
//!
//! A [`Jump`] is a change by more than [`JUMP`]: an answer that widens the estimate so far, or an opinion at its low end
//! that is forgotten. From then on what acts by time pauses for a while, so that somebody can look before a clock that is
//! wrong deletes what it should not. A pause that lasts is not prolonged by what is forgotten: that is the end of the
//! same change.

use std::{cmp::Reverse, time::Duration};

use trainjob_api::time::Timestamp;

use super::interval::{Interval, Micros, SECOND, Sample, drift, micros};
use crate::now::Now;

/// How long an opinion is kept that no answer agrees with alone any more. It is many times as long as the API server is
/// ever not [asked](super::Planner).
const MEMORY: Micros = 300 * SECOND;

/// A change of the estimate by more than this is a jump. No clock that is disciplined changes so far at once.
const JUMP: Micros = 60 * SECOND;

/// How many opinions are kept; the two that are nearest to each other become one when there are more.
const OPINIONS: usize = 8;

/// The estimate.
#[derive(Debug, Clone)]
pub struct Estimator {
    opinions: Vec<Opinion>,
    /// When an answer was last taken in.
    answered: Option<Micros>,
    pause: Micros,
    paused_until: Option<Micros>,
    last_jump: Option<Jump>,
    jumps: u64,
}

/// What answers that agree say of the server's clock.
#[derive(Debug, Clone, Copy)]
struct Opinion {
    /// How much it was ahead.
    ahead: Interval,
    /// When that was so, which is when an answer last agreed with it alone.
    at: Micros,
}

/// A change of the estimate that no disciplined clock makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// By how many seconds it moved; negative: back.
    pub seconds: i64,
}

/// What the estimate says at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// What the server's clock shows, since 1970.
    pub clock: Interval,
    /// Whether what acts by time pauses.
    pub paused: bool,
}

impl Opinion {
    /// What it says at a later moment.
    const fn then(&self, now: Micros) -> Interval {
        self.ahead.aged(now.saturating_sub(self.at))
    }
}

impl Estimator {
    /// One that knows nothing yet. After a jump what acts by time pauses for `pause`.
    #[must_use]
    pub fn new(pause: Duration) -> Self {
        Self {
            opinions: Vec::new(),
            answered: None,
            pause: micros(pause),
            paused_until: None,
            last_jump: None,
            jumps: 0,
        }
    }

    /// Takes in an answer. It may have come a little before one that was taken in already.
    pub fn observe(&mut self, sample: &Sample) {
        let at = sample.at().max(self.answered.unwrap_or(Micros::MIN));
        self.answered = Some(at);
        self.forget(at);
        let said = sample.ahead().aged(at.saturating_sub(sample.at()));
        let mut agreeing = self
            .opinions
            .iter_mut()
            .filter(|opinion| opinion.then(at).intersection(said).is_some());
        match (agreeing.next(), agreeing.next()) {
            (None, _) => self.contradict(said, at),
            (Some(only), None) => {
                let then = only.then(at);
                *only = Opinion { ahead: then.intersection(said).unwrap_or(then), at };
            }
            // It does not tell which of them it agrees with.
            (Some(_), Some(_)) => {}
        }
    }

    /// What is known at a moment, which is not before the last answer; `None` before the first.
    pub fn reading(&mut self, now: Duration) -> Option<Reading> {
        let now = micros(now);
        self.forget(now);
        let clock = self.ahead(now)?.plus(now);
        let paused = self.paused_until.is_some_and(|until| now < until);
        Some(Reading { clock, paused })
    }

    /// How many jumps there were.
    #[must_use]
    pub const fn jumps(&self) -> u64 {
        self.jumps
    }

    /// The last jump, if there was one.
    #[must_use]
    pub const fn last_jump(&self) -> Option<Jump> {
        self.last_jump
    }

    /// The opinion that is known the least well, and when an answer was last taken in; `None` before the first.
    pub(super) fn widest(&self, now: Micros) -> Option<(Interval, Micros)> {
        let intervals = self.opinions.iter().map(|opinion| opinion.then(now));
        let widest = intervals.max_by_key(|interval| interval.width())?;
        Some((widest, self.answered?))
    }

    fn ahead(&self, now: Micros) -> Option<Interval> {
        self.opinions.iter().map(|opinion| opinion.then(now)).reduce(Interval::hull)
    }

    /// An answer that agrees with no opinion is one.
    fn contradict(&mut self, said: Interval, at: Micros) {
        if let Some(before) = self.ahead(at) {
            let after = before.hull(said);
            let (forth, back) =
                (after.high.saturating_sub(before.high), after.low.saturating_sub(before.low));
            if forth > JUMP || back < -JUMP {
                self.jumped(if forth > back.saturating_neg() { forth } else { back }, at);
            }
        }
        self.opinions.push(Opinion { ahead: said, at });
        self.opinions.sort_by_key(|opinion| opinion.ahead.low);
        if self.opinions.len() > OPINIONS {
            self.merge_nearest(at);
        }
    }

    /// Forgets opinions that no answer has agreed with for long, but for the last, and of equals the earliest.
    fn forget(&mut self, now: Micros) {
        let since = now.saturating_sub(MEMORY);
        let is_last = |opinion: &&Opinion| (opinion.at, Reverse(opinion.ahead.low));
        let Some(last) = self.opinions.iter().max_by_key(is_last).copied() else { return };
        if self.opinions.len() == 1 || self.opinions.iter().all(|opinion| opinion.at >= since) {
            return;
        }
        let before = self.ahead(now);
        self.opinions.retain(|opinion| opinion.at >= since);
        if self.opinions.is_empty() {
            self.opinions.push(last);
        }
        let moved =
            before.zip(self.ahead(now)).map(|(before, after)| after.low.saturating_sub(before.low));
        let lasts = self.paused_until.is_some_and(|until| now < until);
        if let Some(moved) = moved.filter(|moved| *moved > JUMP && !lasts) {
            self.jumped(moved, now);
        }
    }

    fn jumped(&mut self, by: Micros, at: Micros) {
        self.last_jump = Some(Jump { seconds: by / SECOND });
        self.jumps = self.jumps.saturating_add(1);
        self.paused_until = Some(at.saturating_add(self.pause));
    }

    fn merge_nearest(&mut self, now: Micros) {
        let gap = |pair: &[Opinion]| match pair {
            [first, second] => second.then(now).low.saturating_sub(first.then(now).high),
            _ => Micros::MAX,
        };
        let nearest = self.opinions.windows(2).enumerate().min_by_key(|(_, pair)| gap(pair));
        let Some((index, _)) = nearest else { return };
        let second = self.opinions.remove(index + 1);
        if let Some(first) = self.opinions.get_mut(index) {
            *first = Opinion {
                ahead: first.then(now).hull(second.then(now)),
                at: first.at.max(second.at).max(now),
            };
        }
    }
}

impl Reading {
    /// The time that decisions are made at.
    #[must_use]
    pub const fn now(&self) -> Now {
        let likely = second(self.clock.middle());
        if self.paused {
            Now::Held { likely }
        } else {
            Now::Known { earliest: second(self.clock.low), likely }
        }
    }

    /// How long it is until an instant has surely come, if no answer comes before; zero if it has. `None` while
    /// what acts by time pauses.
    #[must_use]
    pub fn until(&self, instant: Timestamp) -> Option<Duration> {
        let left = instant.0.saturating_mul(SECOND).saturating_sub(self.clock.low).max(0);
        // What is known grows older while it is waited for.
        let wait = left.saturating_add(if left > 0 { drift(left).saturating_mul(2) } else { 0 });
        (!self.paused).then(|| Duration::from_micros(wait.unsigned_abs()))
    }
}

/// The second that an instant is in, as Kubernetes cuts it off.
const fn second(instant: Micros) -> Timestamp {
    Timestamp(instant.div_euclid(SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_mins(10);

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// An answer that took a millisecond, of a server whose clock is ahead by so many milliseconds.
    fn answer(at_millis: u64, ahead_millis: i64) -> Sample {
        let sent = Duration::from_millis(at_millis);
        let clock = i64::try_from(at_millis).unwrap() + ahead_millis;
        let received = sent + Duration::from_millis(1);
        Sample { sent, received, date: Timestamp(clock.div_euclid(1_000)) }
    }

    /// The estimate after these answers: when each came, and how far ahead the clock was, in milliseconds.
    fn after(answers: &[(u64, i64)]) -> Estimator {
        let mut estimator = Estimator::new(PAUSE);
        for (at, ahead) in answers {
            estimator.observe(&answer(*at, *ahead));
        }
        estimator
    }

    fn ahead(estimator: &mut Estimator, at: Duration) -> Interval {
        estimator.reading(at).unwrap().clock.plus(-micros(at))
    }

    #[test]
    fn nothing_is_known_before_the_first_answer() {
        assert_eq!(Estimator::new(PAUSE).reading(seconds(1)), None);
    }

    #[test]
    fn answers_that_agree_say_more_together() {
        let mut estimator = after(&[(1_000, 500), (1_450, 500), (1_550, 500)]);
        let known = ahead(&mut estimator, Duration::from_millis(1_552));
        assert!(known.low <= 500_000 && 500_000 <= known.high, "{known:?}");
        assert!(known.width() < 120_000, "{known:?}");
        assert_eq!(estimator.jumps(), 0);
    }

    #[test]
    fn answers_that_contradict_each_other_widen_the_estimate_to_both() {
        let mut estimator = after(&[(1_000, 0), (2_000, 5_000), (3_000, 0), (4_000, 5_000)]);
        let known = ahead(&mut estimator, seconds(5));
        assert!(known.low <= 0 && 5_000_000 <= known.high, "{known:?}");
        assert!(known.width() < 7_100_000, "{known:?}");
        assert!(!estimator.reading(seconds(5)).unwrap().paused);
    }

    #[test]
    fn opinion_that_no_answer_agrees_with_is_forgotten_after_five_minutes() {
        let mut estimator = after(&[(1_000, 0), (2_000, 5_000), (200_000, 5_000)]);
        assert!(ahead(&mut estimator, seconds(300)).low <= 0);
        assert!(ahead(&mut estimator, seconds(302)).low > 3_900_000);
        // However old it is, the last one stays, and is known less well.
        let later = ahead(&mut estimator, seconds(100_000));
        assert!(later.low <= 5_000_000 && 5_000_000 <= later.high, "{later:?}");
    }

    #[test]
    fn clock_that_is_set_by_more_than_a_minute_pauses_what_acts_by_time() {
        for (by, jumps) in [(3_600, 1), (-3_600, 1), (63, 1), (-63, 1), (58, 0), (-58, 0)] {
            let mut estimator = after(&[(1_000, 0), (2_000, by * 1_000)]);
            assert_eq!(estimator.jumps(), jumps, "{by}");
            let reading = estimator.reading(seconds(3)).unwrap();
            assert_eq!(reading.paused, jumps > 0, "{by}");
            assert_eq!(reading.until(Timestamp(0)).is_none(), jumps > 0, "{by}");
            if let Some(jump) = estimator.last_jump() {
                assert!((jump.seconds - by).abs() <= 2, "{by}: {jump:?}");
            }
        }
    }

    #[test]
    fn pause_ends_and_the_old_time_is_forgotten_by_then() {
        let mut answers = vec![(1_000, 0)];
        answers.extend((2..=700).map(|second| (second * 1_000, 3_600_000)));
        let mut estimator = after(&answers);
        assert_eq!(estimator.jumps(), 1, "what is forgotten during the pause is the same jump");
        let reading = estimator.reading(seconds(701)).unwrap();
        assert!(!reading.paused);
        assert_eq!(reading.now().reached().map(|at| at.0 / 10), Some(430));
        assert!(after(&answers[..599]).reading(seconds(601)).unwrap().paused);
    }

    #[test]
    fn earliest_time_that_moves_on_because_a_server_is_gone_pauses_too() {
        let mut both: Vec<_> =
            (1..=800).map(|n| (n * 1_000, if n % 2 == 0 { 0 } else { 3_600_000 })).collect();
        assert!(!after(&both).reading(seconds(801)).unwrap().paused, "they differ for long");
        both.extend((801..=1_105).map(|second| (second * 1_000, 3_600_000)));
        let mut gone = after(&both);
        assert_eq!(gone.jumps(), 2);
        assert!(gone.reading(seconds(1_106)).unwrap().paused);
    }

    #[test]
    fn there_are_never_more_than_a_few_opinions() {
        let answers: Vec<_> =
            (1..=40).map(|n: u32| (u64::from(n) * 1_000, i64::from(n * n) * 3_000)).collect();
        let mut estimator = after(&answers);
        assert_eq!(estimator.opinions.len(), OPINIONS);
        let known = ahead(&mut estimator, seconds(41));
        assert!(known.low <= 3_000_000 && known.high >= 4_800_000_000, "{known:?}");
    }

    #[test]
    fn wait_for_an_instant_ends_when_it_has_come() {
        let mut estimator = after(&[(1_000, 500), (1_450, 500), (1_550, 500)]);
        let begin = seconds(2);
        for instant in [3, 60, 100_000].map(Timestamp) {
            let wait = estimator.reading(begin).unwrap().until(instant).unwrap();
            let then = estimator.clone().reading(begin + wait).unwrap().now();
            assert!(then.has_come(instant), "{instant:?}");
            let before = begin + wait.mul_f64(0.99);
            let before = estimator.clone().reading(before).unwrap().now();
            assert!(!before.has_come(instant), "{instant:?}");
        }
        assert_eq!(estimator.reading(begin).unwrap().until(Timestamp(1)), Some(Duration::ZERO));
    }
}
