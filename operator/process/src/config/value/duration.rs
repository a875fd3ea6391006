//! Lengths of time.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::text::{Text, reads};

/// A length of time as Go writes it: `15s`, `1m30s`, `1.5h`, `0`; not negative, whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoDuration(pub Duration);

/// The units, in nanoseconds, from the longest.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl GoDuration {
    /// Whole seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Whole days.
    #[must_use]
    pub const fn days(days: u32) -> Self {
        Self(Duration::from_hours(24).saturating_mul(days))
    }
}

impl Text for GoDuration {
    const EXPECTED: &str = "a length of time such as 15s or 1m30s";
    const PATTERN: &str = r"^\+?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$";

    fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix('+').unwrap_or(text);
        if rest == "0" {
            return Some(Self(Duration::ZERO));
        }
        let mut total = Duration::ZERO;
        loop {
            let (number, tail) = split_before(rest, |c| !c.is_ascii_digit() && c != '.');
            let (unit, tail) = split_before(tail, |c| c.is_ascii_digit() || c == '.');
            total = total.checked_add(amount(number, unit)?)?;
            if tail.is_empty() {
                // Go counts nanoseconds in an `int64`.
                return (total.as_nanos() <= i64::MAX.unsigned_abs().into()).then_some(Self(total));
            }
            rest = tail;
        }
    }
}

impl FromStr for GoDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| format!("{text:?}, expected {}", Self::EXPECTED))
    }
}

/// Splits before the first character that `ends` accepts.
fn split_before(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at_checked(text.find(ends).unwrap_or(text.len())).unwrap_or((text, ""))
}

/// A decimal number of a unit, cut off to whole nanoseconds.
fn amount(number: &str, unit: &str) -> Option<Duration> {
    // Go takes either of the two letters for a millionth.
    let unit = if matches!(unit, "µs" | "μs") { "us" } else { unit };
    let (_, nanos) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut total =
        if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.checked_mul(nanos)? };
    let mut place = nanos;
    for digit in fraction.chars() {
        place /= 10;
        total = total.checked_add(place.checked_mul(digit.to_digit(10)?.into())?)?;
    }
    Some(Duration::from_nanos(total))
}

/// As Go reads it, in one unit.
impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let unit = UNITS.into_iter().find(|(_, of)| nanos.is_multiple_of(u128::from(*of)));
        let (name, of) = unit.unwrap_or(("ns", 1));
        write!(f, "{}{name}", nanos / u128::from(of))
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

reads!(GoDuration);

/// A length of time of at least `MIN` and at most `MAX` milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Interval<const MIN: u64, const MAX: u64>(GoDuration);

impl<const MIN: u64, const MAX: u64> Interval<MIN, MAX> {
    /// `N` milliseconds. It does not compile if `N` is out of bounds.
    #[must_use]
    pub const fn of<const N: u64>() -> Self {
        const { assert!(MIN <= N && N <= MAX, "out of bounds") };
        Self(GoDuration(Duration::from_millis(N)))
    }

    /// The length.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0.0
    }

    fn expected() -> String {
        format!("from {:?} to {:?}", Duration::from_millis(MIN), Duration::from_millis(MAX))
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Interval<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = GoDuration::deserialize(deserializer)?;
        if (Duration::from_millis(MIN)..=Duration::from_millis(MAX)).contains(&given.0) {
            Ok(Self(given))
        } else {
            Err(D::Error::custom(format_args!("{:?}, expected {}", given.0, Self::expected())))
        }
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Interval<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("IntervalFrom{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let expected = format!("a length of time {}", Self::expected());
        json_schema!({"type": "string", "pattern": GoDuration::PATTERN, "x-expected": expected})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_what_go_takes_it_for() {
        for (text, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("+5s", 5_000_000_000),
            ("15s", 15_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h1m1s1ms1us1ns", 3_661_001_001_001),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("3µs", 3_000),
            ("0.9ns", 0),
            ("9223372036854775807ns", i64::MAX.unsigned_abs()),
        ] {
            let expected = Some(GoDuration(Duration::from_nanos(nanos)));
            assert_eq!(GoDuration::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_length_of_time_is_written_as_it_is_read() {
        for text in ["87600h", "5m", "90s", "50ms", "3us", "1ns"] {
            assert_eq!(GoDuration::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_none() {
        let too_long = ["9223372036854775808ns", "3000000h", "99999999999999999999s"];
        let no_numbers = ["", "+", "s", ".s", "1", "15", "1s5", "-1s", "1 s", "1.2.3s", "1d", "١s"];
        for text in too_long.into_iter().chain(no_numbers) {
            assert_eq!(GoDuration::parse(text), None, "{text}");
        }
    }
}
