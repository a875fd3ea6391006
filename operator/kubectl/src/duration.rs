//! Spans of time, as people write and read them.

use k8s_openapi::jiff::{Span, SpanRelativeTo};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// So many seconds in at most two units, the largest first, such as `2h5m`; what is smaller than those is cut off.
///
/// ```
/// use kubectl_trainjob::duration::brief;
///
/// assert_eq!(brief(7_530), "2h5m");
/// ```
#[must_use]
pub fn brief(seconds: u64) -> String {
    let (large, small) = match seconds {
        ..MINUTE => return format!("{seconds}s"),
        MINUTE..HOUR => ((MINUTE, "m"), (1, "s")),
        HOUR..DAY => ((HOUR, "h"), (MINUTE, "m")),
        DAY.. => ((DAY, "d"), (HOUR, "h")),
    };
    let (whole, rest) = (seconds / large.0, seconds % large.0 / small.0);
    // A year and more: hours do not matter any more, and the column stays narrow.
    if rest == 0 || whole > 365 && large.0 == DAY {
        format!("{whole}{}", large.1)
    } else {
        format!("{whole}{}{rest}{}", large.1, small.1)
    }
}

/// The seconds that a text such as `90m`, `2h`, `1h30m` or `1d` means, or a whole number of seconds. Days have 24 hours.
///
/// # Errors
///
/// It is none, it is less than a second, or it has units that differ in length, such as months. The text says what would
/// be right.
pub fn parse(text: &str) -> Result<i64, String> {
    let seconds = text.parse::<i64>().ok().or_else(|| {
        let span: Span = text.parse().ok()?;
        Some(span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?.as_secs())
    });
    match seconds {
        Some(seconds) if seconds >= 1 => Ok(seconds),
        Some(_) => Err("it must be at least one second".to_owned()),
        None => Err("write a duration such as 90m, 2h, 1h30m or 1d, or seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_at_most_two_units() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (61, "1m1s"),
            (3_599, "59m59s"),
            (3_600, "1h"),
            (7_530, "2h5m"),
            (86_399, "23h59m"),
            (86_400, "1d"),
            (90_000, "1d1h"),
            (86_400 * 365 + 3_600 * 23, "365d23h"),
            (86_400 * 366 + 3_600, "366d"),
            (2_147_483_647, "24855d"),
        ] {
            assert_eq!(brief(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_duration_is_read_as_people_write_it() {
        for (text, expected) in [
            ("90m", 5_400),
            ("2h", 7_200),
            ("1h30m", 5_400),
            ("1h 30m", 5_400),
            ("1d", 86_400),
            ("1w", 604_800),
            ("45s", 45),
            ("3600", 3_600),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_what_would_be_one() {
        for (text, said) in [
            ("", "such as 90m"),
            ("2x", "such as 90m"),
            ("h", "such as 90m"),
            ("1 month", "such as 90m"),
            ("0", "at least one second"),
            ("0h", "at least one second"),
            ("-5m", "at least one second"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
