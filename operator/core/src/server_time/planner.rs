//! When it is worth asking the API server for nothing but its time.
//!
//! The more is not known, the more an answer says, if it is made in the middle of what is not known: when the server's
//! clock turns to the next second in one half of all cases and has yet to turn in the other. So each such answer halves
//! what is not known, until that is as long as an answer takes. Requests are sent half an answer's time before.
//!
//! A few of them are sent at the start, one a second. After that, what the clocks drift apart makes one necessary every
//! few minutes, or none where other answers say enough. Without any answer the time is asked for every
//! half minute, so that a clock that was set is noticed. While something is due soon, what is not known makes it late, so
//! the time is asked for every second or two ([`Precision`]).

use std::time::Duration;

use super::{
    estimator::Estimator,
    interval::{DRIFT_PPM, Micros, SECOND, micros},
};

/// The longest that no answer comes before the time is asked for.
const SILENCE: Micros = 30 * SECOND;

/// The first wait after a request that said nothing new; it doubles up to [`Precision::longest_wait`].
const AGAIN: Micros = SECOND;

/// How many of the last answers count for how long one takes.
const COUNTED: usize = 4;

/// The longest time of an answer that requests are sent ahead by.
const LONGEST: Micros = 250_000;

/// How well the time should be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// As well as is promised (`docs/semantics.md` §5).
    Promised,
    /// As well as answers can tell, because something is due soon.
    Best,
}

impl Precision {
    /// What is not known is made shorter than this, if answers come fast enough.
    const fn wanted(self) -> Micros {
        match self {
            // It leaves room for the drift until the next answer below the 100 milliseconds that are promised.
            Self::Promised => 80_000,
            // What an answer of an idle API server takes.
            Self::Best => 1_000,
        }
    }

    /// The longest wait after requests that said nothing new.
    const fn longest_wait(self) -> Micros {
        match self {
            Self::Promised => SILENCE,
            Self::Best => 2 * SECOND,
        }
    }
}

/// Plans requests for the time.
#[derive(Debug, Clone, Default)]
pub struct Planner {
    took: [Micros; COUNTED],
    asked: usize,
    /// Requests in a row that said nothing new.
    in_vain: u32,
    /// What was not known when the last request was planned, and what was to be known.
    before: Option<(Micros, Precision)>,
    /// When the last request was answered, or was not.
    last: Option<Micros>,
}

impl Planner {
    /// When to send the next request; at once, if that is not after `now`. It may be asked again before it is sent.
    #[must_use]
    pub fn next(&mut self, estimator: &Estimator, now: Duration, precision: Precision) -> Duration {
        let now = micros(now);
        let waited = self.last.map_or(now, |last| last.saturating_add(self.wait(precision)));
        let Some((ahead, answered)) = estimator.widest(now) else {
            self.before = None;
            return instant(waited.max(now));
        };
        let width = ahead.width();
        self.before = Some((width, precision));
        let earliest = match precision.wanted().saturating_sub(width) {
            spare @ 0.. => lasts(spare, now).min(answered.saturating_add(SILENCE)),
            _ => waited,
        };
        let earliest = earliest.max(now);
        // The server's clock turns when what this machine's shows and what it is ahead by make whole seconds.
        let lead = self.took.into_iter().max().unwrap_or(0).min(LONGEST) / 2;
        let turned = earliest.saturating_add(lead).saturating_add(ahead.middle());
        let until_turn = SECOND - turned.rem_euclid(SECOND);
        instant(earliest.saturating_add(until_turn % SECOND))
    }

    /// Takes in that the request that was planned last was answered after so long, or not at all.
    pub fn asked(&mut self, took: Option<Duration>, estimator: &Estimator, now: Duration) {
        let now = micros(now);
        self.last = Some(now);
        if let Some(took) = took {
            if let Some(place) = self.took.get_mut(self.asked % COUNTED) {
                *place = micros(took);
            }
            self.asked = self.asked.wrapping_add(1);
        }
        let after = estimator.widest(now).map(|(ahead, _)| ahead.width());
        let worth = match (self.before, after) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some((before, precision)), Some(after)) => {
                after <= precision.wanted() || after < before / 10 * 9
            }
        };
        self.in_vain = if worth { 0 } else { self.in_vain.saturating_add(1) };
    }

    /// How long to wait after requests that said nothing new.
    fn wait(&self, precision: Precision) -> Micros {
        match self.in_vain {
            0 => 0,
            times => AGAIN.saturating_mul(1 << (times - 1).min(10)).min(precision.longest_wait()),
        }
    }
}

/// Until when no more than `spare` becomes unknown, at both ends of what is known.
const fn lasts(spare: Micros, now: Micros) -> Micros {
    now.saturating_add(spare.saturating_mul(SECOND / (2 * DRIFT_PPM)))
}

fn instant(at: Micros) -> Duration {
    Duration::from_micros(u64::try_from(at).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use trainjob_api::time::Timestamp;

    use super::{super::interval::Sample, *};

    const PAUSE: Duration = Duration::from_mins(10);

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn after(samples: &[(u64, i64)]) -> Estimator {
        let mut estimator = Estimator::new(PAUSE);
        for (at, date) in samples {
            let (sent, received) = (millis(*at), millis(*at + 1));
            estimator.observe(&Sample { sent, received, date: Timestamp(*date) });
        }
        estimator
    }

    #[test]
    fn time_is_asked_for_at_once_at_the_start_and_less_often_while_there_is_no_answer() {
        let (nothing, mut planner) = (Estimator::new(PAUSE), Planner::default());
        let waits = [0, 1, 2, 4, 8, 16, 30, 30].map(|seconds| millis(seconds * 1_000));
        for wait in waits {
            assert_eq!(
                planner.next(&nothing, millis(5_000), Precision::Promised),
                millis(5_000) + wait
            );
            planner.asked(None, &nothing, millis(5_000));
        }
    }

    #[test]
    fn request_is_sent_where_it_halves_what_is_not_known() {
        // The clock is ahead by 98.999 to 100 seconds, so it most likely turns half a second after this one does.
        let one = after(&[(1_000, 100)]);
        let next = Planner::default().next(&one, millis(1_002), Precision::Promised);
        assert!((millis(1_498)..=millis(1_502)).contains(&next), "{next:?}");
    }

    #[test]
    fn time_that_is_known_is_asked_for_when_nothing_was_heard_for_half_a_minute() {
        let known = after(&[(1_990, 99), (2_009, 100)]);
        let next = Planner::default().next(&known, millis(3_000), Precision::Promised);
        assert!((millis(32_010)..=millis(33_020)).contains(&next), "{next:?}");
    }

    #[test]
    fn requests_that_say_nothing_new_become_seldom() {
        let vague = after(&[(1_000, 100)]);
        let mut planner = Planner::default();
        let mut now = millis(2_000);
        for _ in 0..10 {
            let next = planner.next(&vague, now, Precision::Promised);
            planner.asked(Some(millis(5)), &vague, next);
            now = next;
        }
        let next = planner.next(&vague, now, Precision::Promised);
        assert!(next >= now + millis(30_000), "{next:?} after {now:?}");
    }

    #[test]
    fn time_that_is_known_as_promised_is_asked_for_every_second_or_two_while_something_is_due_soon()
    {
        let known = after(&[(1_990, 99), (2_009, 100)]);
        let mut planner = Planner::default();
        let mut now = millis(3_000);
        for _ in 0..10 {
            let next = planner.next(&known, now, Precision::Best);
            assert!(next <= now + millis(3_001), "{next:?} after {now:?}");
            planner.asked(Some(millis(5)), &known, next);
            now = next;
        }
    }

    #[test]
    fn request_that_is_planned_again_is_sent_no_later() {
        let (vague, nothing) = (after(&[(1_000, 100)]), Estimator::new(PAUSE));
        for estimator in [&vague, &nothing] {
            let mut planner = Planner::default();
            for _ in 0..3 {
                let _ = planner.next(estimator, millis(2_000), Precision::Promised);
                planner.asked(Some(millis(5)), estimator, millis(2_000));
            }
            let next = planner.next(estimator, millis(2_000), Precision::Promised);
            assert!(next > millis(3_000), "{next:?}");
            let again = planner.next(estimator, millis(3_000), Precision::Promised);
            assert!(again <= next && next <= again + millis(1), "{next:?}, then {again:?}");
        }
    }
}
