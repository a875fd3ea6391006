//! How long to wait before trying again.

use std::time::Duration;

use trainjob_core::lane::Lane;
use trainjob_process::spread;

/// The wait after the first failure, before it is spread.
const FIRST: Duration = Duration::from_millis(100);

/// How long the operator waits before it tries a job again after `failures` failures in a row.
///
/// Doubling from 100 ms up to what the lane allows, then spread over the upper half, so that what
/// failed together is not tried again together.
#[must_use]
pub fn backoff(failures: u32, lane: Lane) -> Duration {
    let longest = match lane {
        Lane::Stop => Duration::from_secs(5),
        Lane::Live => Duration::from_mins(1),
        Lane::Cleanup => Duration::from_mins(2),
    };
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    spread(doubled.min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_limit_of_the_lane_and_are_spread_over_their_upper_half() {
        for (failures, lane, full) in [
            (1, Lane::Live, 100),
            (2, Lane::Live, 200),
            (20, Lane::Stop, 5_000),
            (20, Lane::Live, 60_000),
            (u32::MAX, Lane::Cleanup, 120_000),
        ] {
            for _ in 0..100 {
                let wait = backoff(failures, lane).as_millis();
                assert!((full / 2..=full).contains(&wait), "{failures} {lane:?}: {wait}");
            }
        }
    }
}
