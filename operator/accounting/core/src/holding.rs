//! How long a Pod is held (AH1 to AH8). A Pod never hangs because of us longer than these rules say; whatever cannot be
//! counted in that time is let go, logged and told of.
//!
//! All durations are by the monotonic clock of the process that measures them, so no jump of a wall clock opens a valve.

use std::time::Duration;

use trainjob_core::mark::LEASE_BELIEVED;

/// After the valve has opened, Pods of that record are held no longer than this, until a write succeeds (AH2).
pub const HOLD_AFTER_LOSS: Duration = Duration::from_secs(10);
/// For how long `drain` leaves Pods that have ended to a leader that lives (AH8).
pub const DRAIN_WAITS: Duration = Duration::from_secs(30);

/// How the writes of a record go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Valve {
    /// The last write succeeded, or none was needed.
    #[default]
    Shut,
    /// Whatever is asked about the record fails, with no write in between, since the instant.
    Refused {
        /// When the failures began, by the monotonic clock.
        since: Duration,
    },
    /// A Pod was let go, and no write has succeeded after that.
    Leaking {
        /// When the refusals began.
        since: Duration,
    },
    /// The namespace terminates, so nothing can be created in it any more.
    Ending,
}

impl Valve {
    /// Whether writes fail.
    #[must_use]
    pub const fn is_running(self) -> bool {
        match self {
            Self::Shut => false,
            Self::Refused { .. } | Self::Leaking { .. } | Self::Ending => true,
        }
    }

    /// The record cannot be created, because its namespace terminates.
    #[must_use]
    pub const fn ending(self) -> Self {
        Self::Ending
    }

    /// What was asked about the record failed, in whatever way. Of a leader, whose Lease is renewed, the API server carries out
    /// what it is asked for: so what fails again and again fails because of the record.
    #[must_use]
    pub const fn refused(self, now: Duration) -> Self {
        match self {
            Self::Shut => Self::Refused { since: now },
            Self::Refused { .. } | Self::Leaking { .. } | Self::Ending => self,
        }
    }

    /// A Pod was let go. If a write has succeeded since that was asked for, no other has to go.
    #[must_use]
    pub const fn let_go(self) -> Self {
        match self {
            Self::Shut => Self::Shut,
            Self::Refused { since } | Self::Leaking { since } => Self::Leaking { since },
            Self::Ending => Self::Ending,
        }
    }

    /// Nothing has to be written.
    #[must_use]
    pub const fn idle(self) -> Self {
        match self {
            Self::Shut | Self::Refused { .. } => Self::Shut,
            Self::Leaking { .. } | Self::Ending => self,
        }
    }

    /// The API server does not answer, or fails to release, too: the clock stands at zero (AH3).
    #[must_use]
    pub const fn silent(self, now: Duration) -> Self {
        match self {
            Self::Shut => Self::Shut,
            Self::Refused { .. } => Self::Refused { since: now },
            Self::Leaking { .. } => Self::Leaking { since: now },
            Self::Ending => Self::Ending,
        }
    }

    /// From when on a Pod is let go that was seen ended and deleted at `seen`; `None`: it is held.
    #[must_use]
    pub fn opens(self, seen: Duration, hold_limit: Option<Duration>) -> Option<Duration> {
        match self {
            Self::Shut => None,
            Self::Refused { since } => Some(since.max(seen).saturating_add(hold_limit?)),
            Self::Leaking { since } => {
                Some(since.max(seen).saturating_add(hold_limit?.min(HOLD_AFTER_LOSS)))
            }
            Self::Ending => Some(seen),
        }
    }
}

/// What the sweeper does with a Pod that has ended and is deleted (AH7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// A leader lives, or has not been away for long enough.
    Leave,
    /// Look again then.
    At(Duration),
    /// Release it, uncounted.
    Release,
}

/// What the sweeper does with a Pod that it has seen ended and deleted since `seen`, while the Lease has been seen
/// to stand still since `still_since`.
#[must_use]
pub fn sweep(now: Duration, still_since: Duration, seen: Duration, after: Duration) -> Sweep {
    let still = now.saturating_sub(still_since);
    if still < LEASE_BELIEVED {
        return Sweep::Leave;
    }
    let due = seen.saturating_add(after);
    if now >= due { Sweep::Release } else { Sweep::At(due) }
}

/// Whether `drain` releases a Pod: any that runs, and one that has ended unless a leader lives that will count it (AH8).
#[must_use]
pub fn drains(leader_lives: bool, has_ended: bool, since_start: Duration) -> bool {
    !(leader_lives && has_ended) || since_start >= DRAIN_WAITS
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn ah2_the_valve_opens_when_writes_were_refused_for_the_limit_and_not_before() {
        let limit = Some(s(300));
        let refused = Valve::Shut.refused(s(100)).refused(s(200));
        for (case, valve, seen, limit, expected) in [
            ("writes go well", Valve::Shut, s(1), limit, None),
            ("Pod seen before", refused, s(50), limit, Some(s(400))),
            ("Pod seen later", refused, s(150), limit, Some(s(450))),
            ("no limit", refused, s(50), None, None),
            ("one was let go", refused.let_go(), s(420), limit, Some(s(430))),
            ("a limit below ten seconds", refused.let_go(), s(420), Some(s(5)), Some(s(425))),
            ("writes went well meanwhile", Valve::Shut.let_go(), s(420), limit, None),
            ("the namespace terminates", refused.ending(), s(420), None, Some(s(420))),
        ] {
            assert_eq!(valve.opens(seen, limit), expected, "{case}");
        }
    }

    #[test]
    fn a_record_into_which_nothing_has_to_be_written_is_not_refused_any_more() {
        let refused = Valve::Shut.refused(s(100));
        let leaking = refused.let_go();
        for (valve, expected) in [
            (Valve::Shut, Valve::Shut),
            (refused, Valve::Shut),
            (leaking, leaking),
            (Valve::Ending, Valve::Ending),
        ] {
            assert_eq!(valve.idle(), expected, "{valve:?}");
        }
    }

    #[test]
    fn ah3_while_the_api_server_is_silent_the_clock_stands_at_zero() {
        let refused = Valve::Shut.refused(s(100));
        assert_eq!(refused.silent(s(390)).opens(s(50), Some(s(300))), Some(s(690)));
        assert_eq!(Valve::Shut.silent(s(390)), Valve::Shut);
        let leaking = refused.let_go().silent(s(500));
        assert_eq!(leaking.opens(s(50), Some(s(300))), Some(s(510)));
    }

    #[test]
    fn ah7_the_sweeper_releases_only_while_no_leader_lives() {
        for (case, now, lease, seen, expected) in [
            ("a leader lives", 100, 41, 0, Sweep::Leave),
            ("it was away for too short", 119, 60, 0, Sweep::Leave),
            ("the Pod is fresh", 120, 60, 60, Sweep::At(s(180))),
            ("the Pod waits", 180, 60, 60, Sweep::Release),
        ] {
            assert_eq!(sweep(s(now), s(lease), s(seen), s(120)), expected, "{case}");
        }
    }

    /// A Pod is stored within a quarter of a second and one request after it was seen, so writes are refused from then
    /// on at the latest; a request takes 10 seconds at most.
    #[test]
    fn ah4_under_a_leader_no_pod_is_held_longer_than_the_limit_and_fifteen_seconds() {
        for seen in 0..100 {
            for refused in [0, seen, seen + 11] {
                for limit in [10, 300] {
                    let valve = Valve::Shut.refused(s(refused)).refused(s(refused + 60));
                    let opens = valve.opens(s(seen), Some(s(limit))).unwrap();
                    assert!(opens <= s(seen + limit + 15), "{seen} {refused} {limit}");
                }
            }
        }
    }

    /// The sweeper sees a Pod at once, and the Lease stands still from then on or earlier.
    #[test]
    fn ah7_no_pod_waits_longer_than_four_minutes_for_the_sweeper() {
        for died in 0..600 {
            for seen in (0..600).step_by(7) {
                let released = (seen..2_000).find(|now| {
                    sweep(s(*now), s(died.min(*now)), s(seen), s(120)) == Sweep::Release
                });
                let waited = released.unwrap() - seen.max(died);
                assert!(waited <= 240, "died {died}, seen {seen}, waited {waited}");
            }
        }
    }

    #[test]
    fn ah8_drain_leaves_ended_pods_to_a_leader_for_half_a_minute() {
        for (leader, ended, since, expected) in [
            (true, true, 0, false),
            (true, true, 29, false),
            (true, true, 30, true),
            (true, false, 0, true),
            (false, true, 0, true),
            (false, false, 0, true),
        ] {
            assert_eq!(drains(leader, ended, s(since)), expected, "{leader} {ended} {since}");
        }
    }
}
