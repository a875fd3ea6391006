//! How far the clock of the API server is from this machine's, from the `Date` of its answers.
//!
//! Whether a TTL or a deadline is due is decided by this machine's clock, on instants that the API server's
//! clock has set. A `Date` has whole seconds, so the difference is known to the second.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use http::header::DATE;
use prometheus::IntGauge;

/// The metric, and when it was set.
#[derive(Debug)]
pub struct ClockOffset {
    gauge: IntGauge,
    /// The second of the last look, since 1970.
    looked: AtomicU64,
}

impl ClockOffset {
    /// One that sets this gauge.
    #[must_use]
    pub const fn new(gauge: IntGauge) -> Self {
        Self { gauge, looked: AtomicU64::new(0) }
    }

    /// Looks at the head of an answer that has just come; once a second is enough.
    pub(super) fn look(&self, headers: &HeaderMap, now: SystemTime) {
        let second = since_1970(now).as_secs();
        if self.looked.swap(second, Ordering::Relaxed) == second {
            return;
        }
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = date.and_then(|date| httpdate::parse_http_date(date).ok()) {
            self.gauge.set(whole_seconds_between(now, date));
        }
    }
}

/// From `now` to an instant that was cut off to the second: 0 as long as it can be the same.
fn whole_seconds_between(now: SystemTime, cut_off: SystemTime) -> i64 {
    let second = |at| i64::try_from(since_1970(at).as_secs()).unwrap_or(i64::MAX);
    match second(cut_off) - second(now) {
        // The answer was on its way when the second began.
        -1 => 0,
        difference => difference,
    }
}

fn since_1970(at: SystemTime) -> Duration {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_difference_is_that_of_the_last_answer_to_the_second() {
        let gauge = IntGauge::new("a", "b").unwrap();
        let offset = ClockOffset::new(gauge.clone());
        let noon = SystemTime::UNIX_EPOCH + Duration::from_hours(490_908);
        let at = |millis: i64| {
            let distance = Duration::from_millis(millis.unsigned_abs());
            if millis < 0 { noon - distance } else { noon + distance }
        };
        let date = HeaderMap::from_iter([(
            DATE,
            HeaderValue::from_static("Thu, 01 Jan 2026 12:00:00 GMT"),
        )]);
        for (now, expected) in [(0, 0), (900, 0), (1_200, 0), (2_000, -2), (-1, 1), (-60_000, 60)] {
            offset.look(&date, at(now));
            assert_eq!(gauge.get(), expected, "at {now}");
        }
        offset.look(&HeaderMap::new(), at(99_000));
        assert_eq!(gauge.get(), 60, "an answer without a date says nothing");
    }
}
