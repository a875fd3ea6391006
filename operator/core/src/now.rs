//! The time of a decision.
//!
//! Instants in objects are set by the API server's clock, so decisions need that clock's time, which is known only
//! by an [estimate](crate::server_time). Two questions are asked of it, and they have different answers. Whether an
//! instant has come is answered by the earliest time that it can be, so that nothing is ever early, and by no time at
//! all while there is no estimate or its [pause](crate::server_time::Estimator) lasts. What is written down
//! as the time of a change is the most likely time, which there always is. The type has no other answer, so a rule
//! cannot act on a time that is not known (`docs/semantics.md` §5).

use trainjob_api::time::Timestamp;

/// The API server's time at one moment, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// It is known.
    Known {
        /// The earliest that it can be.
        earliest: Timestamp,
        /// What it most likely is; not before `earliest`.
        likely: Timestamp,
    },
    /// It is not known, or has changed in a way that somebody should look at: no instant has come.
    Held {
        /// What it most likely is; maybe no more than what the clock of this machine shows.
        likely: Timestamp,
    },
}

impl Now {
    /// A time that is known to the second.
    #[must_use]
    pub const fn at(time: Timestamp) -> Self {
        Self::Known { earliest: time, likely: time }
    }

    /// Whether an instant has surely come, so that what it was waited for may be done.
    #[must_use]
    pub fn has_come(self, instant: Timestamp) -> bool {
        self.reached().is_some_and(|reached| instant <= reached)
    }

    /// The last instant that has surely come; `None` while none has.
    #[must_use]
    pub const fn reached(self) -> Option<Timestamp> {
        match self {
            Self::Known { earliest, .. } => Some(earliest),
            Self::Held { .. } => None,
        }
    }

    /// The time that is written down for what happens now.
    #[must_use]
    pub const fn stamp(self) -> Timestamp {
        match self {
            Self::Known { likely, .. } | Self::Held { likely } => likely,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_has_come_when_the_earliest_time_has_reached_it_and_never_while_time_is_held() {
        let known = Now::Known { earliest: Timestamp(10), likely: Timestamp(12) };
        let held = Now::Held { likely: Timestamp(12) };
        for (now, instant, expected) in [
            (known, 9, true),
            (known, 10, true),
            (known, 11, false),
            (known, 12, false),
            (held, 9, false),
            (held, i64::MIN, false),
            (Now::at(Timestamp(12)), 12, true),
        ] {
            assert_eq!(now.has_come(Timestamp(instant)), expected, "{now:?} {instant}");
        }
    }

    #[test]
    fn a_time_to_write_down_is_always_there() {
        let known = Now::Known { earliest: Timestamp(10), likely: Timestamp(12) };
        assert_eq!(known.stamp(), Timestamp(12));
        assert_eq!(Now::Held { likely: Timestamp(7) }.stamp(), Timestamp(7));
    }
}
