//! The `Date` of answers, as an API server with another clock would write it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use http::header::{DATE, HeaderMap, HeaderValue};

/// By how many seconds the dates of answers are moved.
#[derive(Debug, Default)]
pub(super) struct Dates {
    first: AtomicI64,
    second: AtomicI64,
    /// Whether it is the turn of the second.
    turn: AtomicBool,
}

impl Dates {
    /// Those of two API servers that answer in turn.
    pub(super) fn set(&self, first: i64, second: i64) {
        self.first.store(first, Ordering::Relaxed);
        self.second.store(second, Ordering::Relaxed);
    }

    /// That of the next answer.
    pub(super) fn next(&self) -> i64 {
        let is_second = self.turn.fetch_not(Ordering::Relaxed);
        let shift = if is_second { &self.second } else { &self.first };
        shift.load(Ordering::Relaxed)
    }
}

/// Moves the date of an answer by so many seconds. One without a date gets that of now.
pub(super) fn shift(headers: &mut HeaderMap, seconds: i64) {
    if seconds == 0 {
        return;
    }
    let told = headers.get(DATE).and_then(|date| date.to_str().ok());
    let date = told.and_then(|date| httpdate::parse_http_date(date).ok());
    let date = date.unwrap_or_else(SystemTime::now);
    let by = Duration::from_secs(seconds.unsigned_abs());
    let shifted = if seconds < 0 { date.checked_sub(by) } else { date.checked_add(by) };
    let text = shifted.map(httpdate::fmt_http_date).unwrap_or_default();
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(DATE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_api_servers_answer_in_turn() {
        let dates = Dates::default();
        dates.set(0, 10);
        assert_eq!([dates.next(), dates.next(), dates.next()], [0, 10, 0]);
    }

    #[test]
    fn date_moves_by_so_many_seconds() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 2026 12:00:00 GMT"),
            (90, "Thu, 01 Jan 2026 12:01:30 GMT"),
            (-3_600, "Thu, 01 Jan 2026 11:00:00 GMT"),
        ] {
            let date = HeaderValue::from_static("Thu, 01 Jan 2026 12:00:00 GMT");
            let mut headers = HeaderMap::from_iter([(DATE, date)]);
            shift(&mut headers, seconds);
            assert_eq!(headers.get(DATE).unwrap(), expected, "{seconds}");
        }
    }
}
