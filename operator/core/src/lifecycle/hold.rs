//! Holds: how long an annotation keeps a finished TrainJob beyond its TTL.
//!
//! A hold lasts until the time that the annotation `lifecycle.trainjob.dev/hold-until` names, but no longer than
//! `lifecycle.maximumHoldSeconds` beyond the end of the TTL. So it ends by itself, and nothing but stored facts says
//! when. It delays the deletion by a TTL and nothing else: no deadline and no release. The rules are T11 of
//! `docs/semantics.md`.

use std::fmt;

use trainjob_api::{
    lifecycle::v1alpha1::{HOLD_ANNOTATION, hold::HoldWish},
    time::Timestamp,
};

use crate::now::Now;

/// `lifecycle.maximumHoldSeconds` unless something else is configured: 30 days, in seconds.
pub const DEFAULT_MAXIMUM: u32 = 2_592_000;

/// An operator that begins to work later than this after a hold has taken effect, in seconds, records no event of it:
/// another one did. By default the API server keeps events for as long, and it refuses the same event twice.
const RECORDED_WITHIN: i64 = 3_600;

/// A hold that delays a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// When it ends; later than the TTL.
    pub until: Timestamp,
    /// Why it ends then.
    pub end: End,
}

/// Why a hold ends when it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The annotation says so.
    AsWished,
    /// The annotation asks for more than `lifecycle.maximumHoldSeconds` allows.
    Capped,
    /// The annotation cannot be read, and holds for as long as it may.
    Unreadable,
}

/// What is known of a job's hold beside the annotation itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum News {
    /// Nothing: it is as it was when this process first saw the job.
    #[default]
    None,
    /// It was changed or removed after the job had finished.
    Edited,
    /// Its event was recorded.
    Recorded,
}

/// The hold of an object whose TTL ends at `ttl_end`; `None` if it is not delayed. `maximum` is how far a hold may
/// reach beyond that, in seconds; 0 means that there are no holds.
#[must_use]
pub fn of(wish: Option<HoldWish>, ttl_end: Timestamp, maximum: u32) -> Option<Hold> {
    let latest = ttl_end.plus(i64::from(maximum));
    let hold = match wish? {
        HoldWish::Until(until) if until <= latest => Hold { until, end: End::AsWished },
        HoldWish::Until(_) => Hold { until: latest, end: End::Capped },
        HoldWish::Unreadable => Hold { until: latest, end: End::Unreadable },
    };
    (hold.until > ttl_end).then_some(hold)
}

/// Whether an event is recorded of a hold that delays a deletion since `ttl_end`: once for each hold, on no later pass
/// and no later start.
#[must_use]
pub fn is_recorded(news: News, ttl_end: Timestamp, now: Now) -> bool {
    match news {
        News::None => !now.has_come(ttl_end.plus(RECORDED_WITHIN)),
        News::Edited => true,
        News::Recorded => false,
    }
}

impl fmt::Display for Hold {
    /// A sentence about the TrainJob, for its event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { until, end } = self;
        write!(f, "TTL has passed. The TrainJob is held until {until}, ")?;
        match end {
            End::AsWished => write!(f, "as its annotation {HOLD_ANNOTATION} says"),
            End::Capped => write!(
                f,
                "which is earlier than its annotation {HOLD_ANNOTATION} says: no hold is longer than lifecycle.maximumHoldSeconds"
            ),
            End::Unreadable => write!(
                f,
                "as long as lifecycle.maximumHoldSeconds allows: its annotation {HOLD_ANNOTATION} is no RFC 3339 time such as 2026-01-04T10:00:00Z"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL_END: Timestamp = Timestamp(1_000);
    const MAXIMUM: u32 = 500;

    const fn until(at: i64) -> HoldWish {
        HoldWish::Until(Timestamp(at))
    }

    #[test]
    fn a_job_is_held_until_the_time_that_its_annotation_names_but_not_beyond_the_maximum() {
        let hold = |at, end| Some(Hold { until: Timestamp(at), end });
        for (wish, expected) in [
            (None, None),
            (Some(until(i64::MIN)), None),
            (Some(until(999)), None),
            (Some(until(1_000)), None),
            (Some(until(1_001)), hold(1_001, End::AsWished)),
            (Some(until(1_500)), hold(1_500, End::AsWished)),
            (Some(until(1_501)), hold(1_500, End::Capped)),
            (Some(until(i64::MAX)), hold(1_500, End::Capped)),
            (Some(HoldWish::Unreadable), hold(1_500, End::Unreadable)),
        ] {
            assert_eq!(of(wish, TTL_END, MAXIMUM), expected, "{wish:?}");
        }
    }

    #[test]
    fn a_maximum_of_zero_allows_no_hold() {
        for wish in [until(1_001), until(i64::MAX), HoldWish::Unreadable] {
            assert_eq!(of(Some(wish), TTL_END, 0), None, "{wish:?}");
        }
    }

    #[test]
    fn a_hold_at_the_end_of_time_stays_there() {
        let end = Timestamp(i64::MAX);
        assert_eq!(of(Some(HoldWish::Unreadable), end, MAXIMUM), None);
    }

    #[test]
    fn a_hold_is_recorded_once_and_not_by_an_operator_that_starts_much_later() {
        for (news, now, expected) in [
            (News::None, 1_000, true),
            (News::None, 4_599, true),
            (News::None, 4_600, false),
            (News::Edited, 9_999, true),
            (News::Recorded, 1_000, false),
            (News::Recorded, 9_999, false),
        ] {
            let now = Now::at(Timestamp(now));
            assert_eq!(is_recorded(news, TTL_END, now), expected, "{news:?} {now:?}");
        }
    }

    #[test]
    fn the_event_says_until_when_and_why() {
        for (end, expected) in [
            (End::AsWished, "hold-until says"),
            (End::Capped, "which is earlier than its annotation"),
            (End::Unreadable, "hold-until is no RFC 3339 time"),
        ] {
            let note = Hold { until: Timestamp(1_767_520_800), end }.to_string();
            assert!(note.contains("held until 2026-01-04T10:00:00Z, "), "{note}");
            assert!(note.contains(expected), "{note}");
        }
    }
}
