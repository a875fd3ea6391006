//! Instants and durations as people read them.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The wall clock, which is what due times are compared with.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The instant `seconds` after `start`; the end of time where that cannot be represented.
#[must_use]
pub fn after(start: Timestamp, seconds: i64) -> Timestamp {
    start.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// How long this demo has been going on: since the first call.
#[must_use]
pub fn elapsed() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// The time that is left, such as `0:07` or `1:59:59`: a second that has begun counts.
#[must_use]
pub fn countdown(left: SignedDuration) -> String {
    let millis = left.as_millis().max(0);
    let seconds = (millis + 999) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// A short duration, such as `12 ms` or `6.2 s`.
#[must_use]
pub fn short(duration: SignedDuration) -> String {
    match duration.as_millis() {
        millis @ ..2000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_countdown_reaches_zero_when_the_instant_is_reached_and_not_before() {
        for (millis, expected) in [
            (7_199_001, "2:00:00"),
            (3_599_000, "59:59"),
            (61_000, "1:01"),
            (1, "0:01"),
            (0, "0:00"),
            (-5_000, "0:00"),
        ] {
            assert_eq!(countdown(SignedDuration::from_millis(millis)), expected, "{millis}");
        }
    }

    #[test]
    fn a_lateness_is_told_in_milliseconds_until_it_takes_seconds() {
        for (millis, expected) in [(0, "0 ms"), (1_999, "1999 ms"), (6_240, "6.2 s")] {
            assert_eq!(short(SignedDuration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn overflowing_due_time_is_the_end_of_time() {
        assert_eq!(after(Timestamp::UNIX_EPOCH, i64::MAX), Timestamp::MAX);
    }
}
