//! An API server that has not discovered the TrainJob kind yet: how long its refusals are waited out.
//!
//! An object may block the deletion of its owner only where the API server knows the owner's kind (its
//! admission plugin `OwnerReferencesPermissionEnforcement`). The plugin looks for new kinds every 30 seconds
//! and never in between. For up to 30 seconds after the definitions were installed it therefore refuses
//! everything that a TrainJob is made of. Nobody has to act on that.

use std::time::Duration;

/// How long such refusals are waited out.
///
/// The plugin knows the kind within 30 seconds of its discovery. Half as much again is for the discovery
/// itself, which an aggregated API that does not answer holds up.
pub const WAITED_OUT: Duration = Duration::from_secs(45);

/// The wait before the next try, before jitter. The kind is discovered at some instant within
/// [`WAITED_OUT`], and waits that grow would miss it by as much again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What to do about such a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Try again after so long, and tell nobody.
    Retry(Duration),
    /// Tell the users of the job, as of any refusal.
    Tell,
}

/// What to do about such a refusal, when the first of them in a row was so long ago.
#[must_use]
pub fn react(refused_for: Duration) -> Reaction {
    if refused_for < WAITED_OUT { Reaction::Retry(RETRY_AFTER) } else { Reaction::Tell }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between two looks of the API server for new kinds.
    const LOOKS_EVERY: Duration = Duration::from_secs(30);

    #[test]
    fn refusal_is_waited_out_for_45_seconds_and_told_from_then_on() {
        let retry = Reaction::Retry(Duration::from_secs(2));
        for (millis, expected) in [
            (0, retry),
            (1, retry),
            (30_000, retry),
            (44_999, retry),
            (45_000, Reaction::Tell),
            (45_001, Reaction::Tell),
            (86_400_000, Reaction::Tell),
        ] {
            assert_eq!(react(Duration::from_millis(millis)), expected, "after {millis} ms");
        }
        assert_eq!(react(Duration::MAX), Reaction::Tell);
    }

    #[test]
    fn an_api_server_that_looks_every_30_seconds_is_never_told_of() {
        let mut refused_for = Duration::ZERO;
        while refused_for <= LOOKS_EVERY {
            let Reaction::Retry(after) = react(refused_for) else {
                panic!("told after {refused_for:?}");
            };
            refused_for += after;
        }
        // The first try that succeeds.
        assert!(refused_for < WAITED_OUT, "{refused_for:?}");
    }
}
