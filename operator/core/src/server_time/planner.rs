//! When it is worth asking the API server for nothing but its time.
//!
//! The more is not known, the more an answer says, if it is made in the middle of what is not known: when the server's
//! clock turns to the next second in one half of all cases and has yet to turn in the other. So each such answer halves
//! what is not known, until that is as long as an answer takes. Requests are sent half an answer's time before.
//!
//! A few of them are sent at the start, one a second. After that, what the clocks drift apart makes one necessary every
//! few minutes, or none where other answers say enough. Without any answer the time is asked for every
//! half minute, so that a clock that was set is noticed.

use std::time::Duration;

use super::{
    estimator::Estimator,
    interval::{Micros, SECOND, micros},
};

/// What is not known is made shorter than this, if answers come fast enough. It leaves room for the drift until the next
/// answer below the 100 milliseconds that are promised.
const WANTED: Micros = 80_000;

/// The longest that no answer comes before the time is asked for.
const SILENCE: Micros = 30 * SECOND;

/// The first wait after a request that said nothing new; it doubles up to [`SILENCE`].
const AGAIN: Micros = SECOND;

/// How many of the last answers count for how long one takes.
const COUNTED: usize = 4;

/// The longest time of an answer that requests are sent ahead by.
const LONGEST: Micros = 250_000;

/// Plans requests for the time.
#[derive(Debug, Clone, Default)]
pub struct Planner {
    took: [Micros; COUNTED],
    asked: usize,
    /// Requests in a row that said nothing new.
    in_vain: u32,
    /// What was not known when the last request was planned.
    before: Option<Micros>,
}

impl Planner {
    /// When to send the next request; at once, if that is not after `now`.
    #[must_use]
    pub fn next(&mut self, estimator: &Estimator, now: Duration) -> Duration {
        let now = micros(now);
        let wait = self.wait();
        let Some((ahead, last)) = estimator.widest(now) else {
            self.before = None;
            return instant(now.saturating_add(wait));
        };
        let width = ahead.width();
        self.before = Some(width);
        let earliest = if width > WANTED {
            now.saturating_add(wait)
        } else {
            last.saturating_add(SILENCE).max(now)
        };
        // The server's clock turns when what this machine's shows and what it is ahead by make whole seconds.
        let lead = self.took.into_iter().max().unwrap_or(0).min(LONGEST) / 2;
        let turned = earliest.saturating_add(lead).saturating_add(ahead.middle());
        let until_turn = SECOND - turned.rem_euclid(SECOND);
        instant(earliest.saturating_add(until_turn % SECOND))
    }

    /// Takes in that the request that was planned last was answered after so long, or not at all.
    pub fn asked(&mut self, took: Option<Duration>, estimator: &Estimator, now: Duration) {
        if let Some(took) = took {
            if let Some(place) = self.took.get_mut(self.asked % COUNTED) {
                *place = micros(took);
            }
            self.asked = self.asked.wrapping_add(1);
        }
        let after = estimator.widest(micros(now)).map(|(ahead, _)| ahead.width());
        let worth = match (self.before, after) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(before), Some(after)) => after <= WANTED || after < before / 10 * 9,
        };
        self.in_vain = if worth { 0 } else { self.in_vain.saturating_add(1) };
    }

    /// How long to wait after requests that said nothing new.
    fn wait(&self) -> Micros {
        match self.in_vain {
            0 => 0,
            times => AGAIN.saturating_mul(1 << (times - 1).min(10)).min(SILENCE),
        }
    }
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
            assert_eq!(planner.next(&nothing, millis(5_000)), millis(5_000) + wait);
            planner.asked(None, &nothing, millis(5_000));
        }
    }

    #[test]
    fn request_is_sent_where_it_halves_what_is_not_known() {
        // The clock is ahead by 98.999 to 100 seconds, so it most likely turns half a second after this one does.
        let one = after(&[(1_000, 100)]);
        let next = Planner::default().next(&one, millis(1_002));
        assert!((millis(1_498)..=millis(1_502)).contains(&next), "{next:?}");
    }

    #[test]
    fn time_that_is_known_is_asked_for_when_nothing_was_heard_for_half_a_minute() {
        let known = after(&[(1_990, 99), (2_009, 100)]);
        let next = Planner::default().next(&known, millis(3_000));
        assert!((millis(32_010)..=millis(33_020)).contains(&next), "{next:?}");
    }

    #[test]
    fn requests_that_say_nothing_new_become_seldom() {
        let vague = after(&[(1_000, 100)]);
        let mut planner = Planner::default();
        let mut now = millis(2_000);
        for _ in 0..10 {
            let next = planner.next(&vague, now);
            planner.asked(Some(millis(5)), &vague, next);
            now = next;
        }
        let next = planner.next(&vague, now);
        assert!(next >= now + millis(30_000), "{next:?} after {now:?}");
    }
}
