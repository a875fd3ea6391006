//! The one bridge between Kubernetes' timestamps and ours.
//!
//! Kubernetes stores whole seconds, cut off. Every instant a decision looks at is cut off in the
//! same way before it is compared, so that a value means the same before and after it was stored.
//! k8s-openapi speaks `jiff`, people read RFC 3339 by way of `chrono`; neither type appears outside
//! this file.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, SecondsFormat, Utc};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff};

/// Seconds since the epoch, cut off as Kubernetes cuts them off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The instant `seconds` later (earlier when negative); where that lies beyond the range of the
    /// type, the first or last instant of the range, which no clock reaches.
    #[must_use]
    pub const fn plus(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// Whole seconds from `earlier` to this instant; negative if it is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant that a text names (RFC 3339, with an offset), cut off to whole seconds.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(|instant| Self::from(&Time(instant)))
    }
}

impl From<&Time> for Timestamp {
    fn from(time: &Time) -> Self {
        // `as_second` cuts towards zero; Kubernetes cuts down. They differ only before 1970.
        let seconds = time.0.as_second();
        Self(if time.0.subsec_nanosecond() < 0 { seconds - 1 } else { seconds })
    }
}

impl From<Timestamp> for Time {
    /// Clamps to the years Kubernetes can represent (up to 9999).
    fn from(at: Timestamp) -> Self {
        let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
        Self(jiff::Timestamp::from_second(at.0.clamp(first, last)).unwrap_or_default())
    }
}

impl From<SystemTime> for Timestamp {
    fn from(now: SystemTime) -> Self {
        Self(DateTime::<Utc>::from(now).timestamp())
    }
}

impl From<Timestamp> for SystemTime {
    /// Where the system's clock cannot represent the instant, its epoch.
    fn from(at: Timestamp) -> Self {
        let distance = Duration::from_secs(at.0.unsigned_abs());
        let instant = if at.0 < 0 {
            Self::UNIX_EPOCH.checked_sub(distance)
        } else {
            Self::UNIX_EPOCH.checked_add(distance)
        };
        instant.unwrap_or(Self::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, such as `2026-01-04T10:00:00Z`; plain seconds where no calendar reaches.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::<Utc>::from_timestamp(self.0, 0) {
            Some(time) => f.write_str(&time.to_rfc3339_opts(SecondsFormat::Secs, true)),
            None => write!(f, "{}s", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn what_kubernetes_stores_comes_back_unchanged() {
        for seconds in [0, 1, 1_767_520_800, 253_402_207_200] {
            assert_eq!(Timestamp::from(&Time::from(Timestamp(seconds))), Timestamp(seconds));
        }
    }

    #[test]
    fn fractions_of_a_second_are_cut_off() {
        let almost_two = UNIX_EPOCH + Duration::from_millis(1_999);
        assert_eq!(Timestamp::from(almost_two), Timestamp(1));
        let jiff_time = Time(jiff::Timestamp::from_millisecond(1_999).unwrap());
        assert_eq!(Timestamp::from(&jiff_time), Timestamp(1));
        let before_epoch = Time(jiff::Timestamp::from_millisecond(-1).unwrap());
        assert_eq!(Timestamp::from(&before_epoch), Timestamp(-1));
    }

    #[test]
    fn arithmetic_ends_at_the_ends_of_time() {
        assert_eq!(Timestamp(5).plus(i64::MAX), Timestamp(i64::MAX));
        assert_eq!(Timestamp(-5).plus(i64::MIN), Timestamp(i64::MIN));
        assert_eq!(Timestamp(i64::MIN).since(Timestamp(1)), i64::MIN);
        let _ = Time::from(Timestamp(i64::MAX));
    }

    #[test]
    fn people_read_rfc_3339() {
        assert_eq!(Timestamp(1_767_520_800).to_string(), "2026-01-04T10:00:00Z");
        assert_eq!(Timestamp(i64::MAX).to_string(), "9223372036854775807s");
    }
}
