//! What one answer says of the server's clock.

use std::time::Duration;

use trainjob_api::time::Timestamp;

/// An instant, a span of time or a difference of two clocks, in microseconds.
pub type Micros = i64;

/// How much faster or slower than the server's clock that of this machine may be, in millionths. Crystals are within
/// 100, and what disciplines a clock corrects slowly.
pub const DRIFT_PPM: Micros = 200;

/// A second.
pub(super) const SECOND: Micros = 1_000_000;

/// One answer of the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When the request was sent, or a moment before, by the clock of this machine.
    pub sent: Duration,
    /// When the head of the answer had come, by the same clock; not before `sent`.
    pub received: Duration,
    /// The `Date` of the answer.
    pub date: Timestamp,
}

/// Where a value lies; both ends are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The least that it can be.
    pub low: Micros,
    /// The most that it can be; not less than `low`.
    pub high: Micros,
}

impl Sample {
    /// When the answer had come.
    #[must_use]
    pub fn at(&self) -> Micros {
        // Rounded up, and the request's instant down, so that the answer was made between the two.
        micros(self.received).saturating_add(1)
    }

    /// How much the server's clock was ahead of this machine's when the answer had come.
    ///
    /// The server read its clock at some instant between `sent` and `received`, and the clocks may have moved apart
    /// from then on.
    #[must_use]
    pub fn ahead(&self) -> Interval {
        let (sent, received) = (micros(self.sent), self.at());
        let date = self.date.0.saturating_mul(SECOND);
        let low = date.saturating_sub(received);
        let high = date.saturating_add(SECOND).saturating_sub(sent);
        Interval { low, high: high.saturating_add(drift(received.saturating_sub(sent))).max(low) }
    }
}

impl Interval {
    /// How far it is from one end to the other: the most that a value in it can be wrong by.
    #[must_use]
    pub const fn width(self) -> Micros {
        self.high.saturating_sub(self.low)
    }

    /// The value that is wrong by the least at most.
    #[must_use]
    pub const fn middle(self) -> Micros {
        self.low.saturating_add(self.width() / 2)
    }

    /// What both say; `None` when they contradict each other.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (low <= high).then_some(Self { low, high })
    }

    /// What either says, and all between.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// What is left of it after a span of time.
    #[must_use]
    pub const fn aged(self, span: Micros) -> Self {
        let drift = drift(span);
        Self { low: self.low.saturating_sub(drift), high: self.high.saturating_add(drift) }
    }

    /// The same, of a clock that is ahead by so much more.
    #[must_use]
    pub const fn plus(self, ahead: Micros) -> Self {
        Self { low: self.low.saturating_add(ahead), high: self.high.saturating_add(ahead) }
    }
}

/// How far two clocks may move apart within a span of time; rounded up.
pub(super) const fn drift(span: Micros) -> Micros {
    if span <= 0 { 0 } else { (span / (SECOND / DRIFT_PPM)).saturating_add(1) }
}

/// A span of time; the longest that there is, if it is longer.
#[must_use]
pub fn micros(span: Duration) -> Micros {
    Micros::try_from(span.as_micros()).unwrap_or(Micros::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn an_answer_bounds_the_difference_by_a_second_and_the_time_it_took() {
        let sample = Sample { sent: millis(2_000), received: millis(2_030), date: Timestamp(100) };
        let ahead = sample.ahead();
        // The answer may have been made last of all, with a clock that had just turned, or first of all, with one that
        // was about to.
        assert_eq!(ahead.low, 97_970_000 - 1);
        assert_eq!(ahead.high, 99_000_000 + 7);
        assert_eq!(ahead.width(), 1_030_008);
    }

    #[test]
    fn two_answers_around_the_turn_of_a_second_say_much_together() {
        let before = Sample { sent: millis(1_990), received: millis(1_991), date: Timestamp(99) };
        let after = Sample { sent: millis(2_009), received: millis(2_010), date: Timestamp(100) };
        let both = before.ahead().intersection(after.ahead()).unwrap();
        assert!(both.width() < 21_000, "{both:?}");
    }

    #[test]
    fn what_was_known_is_known_less_well_later() {
        let known = Interval { low: 0, high: 0 };
        assert_eq!(known.aged(60 * SECOND), Interval { low: -12_001, high: 12_001 });
        assert_eq!(known.aged(0), known);
        let ends = Interval { low: Micros::MIN, high: Micros::MAX };
        assert_eq!(ends.aged(Micros::MAX).width(), Micros::MAX);
    }

    #[test]
    fn a_date_beyond_all_calendars_is_taken_as_it_is() {
        for date in [i64::MIN, i64::MAX] {
            let sample = Sample { sent: millis(1), received: millis(2), date: Timestamp(date) };
            let ahead = sample.ahead();
            assert!(ahead.low <= ahead.high, "{ahead:?}");
        }
    }
}
