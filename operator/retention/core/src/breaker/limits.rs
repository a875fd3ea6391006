//! The numbers of the breaker, in seconds and objects.

use std::num::NonZeroU64;

/// By how much an object may be due before `enforcedThrough` and still be expected (R41), in seconds: clocks differ, and
/// events come late.
pub const SLACK: i64 = 120;

/// How long it takes at most until an owner is asked for again that had not finished (R24), in seconds.
pub const OWNER_ASKED_WITHIN: i64 = 1_800;

/// How long an unexpected object waits, in seconds: what one edit makes due has to be counted together (R42).
pub const SETTLING: i64 = 120;

/// How far `enforcedThrough` may be in the future, in seconds, before the clock is suspect (R46).
pub const CLOCK_AHEAD: i64 = 60;

/// How often a record is stored if nothing urgent has changed, in seconds (R40).
pub const STORE_INTERVAL: i64 = 60;

/// For how long an expected object that is not deleted holds `enforcedThrough` back, in seconds (R40).
pub const PATIENCE: i64 = 86_400;

/// How many namespaces may be full before the policy trips as a whole.
const NAMESPACES: u64 = 10;

/// How many objects the acknowledgement of a trip with this number lets go.
///
/// At least as many as go without one.
pub(super) fn allowance(count: u64, max_count: NonZeroU64) -> u64 {
    count.saturating_add(count / 10).max(max_count.get())
}

/// Whether so many unexpected objects in namespaces are too many for the policy as a whole.
pub(super) fn too_many_in_all(counts: impl Iterator<Item = u64>, max_count: NonZeroU64) -> bool {
    let full = max_count.get();
    let sum = counts.fold(0_u64, |sum, count| sum.saturating_add(count.min(full)));
    sum > full.saturating_mul(NAMESPACES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: NonZeroU64 = NonZeroU64::new(50).unwrap();

    #[test]
    fn an_acknowledgement_allows_a_tenth_more_and_never_less_than_the_limit() {
        for (count, allowed) in [(0, 50), (45, 50), (49, 53), (51, 56), (59, 64), (8_213, 9_034)] {
            assert_eq!(allowance(count, LIMIT), allowed, "{count}");
        }
        assert_eq!(allowance(u64::MAX, LIMIT), u64::MAX);
    }

    #[test]
    fn a_namespace_counts_for_the_limit_at_most() {
        for (counts, too_many) in [
            (vec![1_000_000], false),
            (vec![51; 10], false),
            (vec![51; 11], true),
            (vec![1; 500], false),
            (vec![1; 501], true),
            (vec![50, 450], false),
        ] {
            assert_eq!(too_many_in_all(counts.iter().copied(), LIMIT), too_many, "{counts:?}");
        }
    }
}
