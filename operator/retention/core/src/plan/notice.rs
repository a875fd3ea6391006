//! What the users of an object are told of it before it is deleted, or because it is not (`docs/retention.md`, R52).
//!
//! A notice follows from the plan and the time alone. Whoever tells it remembers what was told, so that a notice is told
//! once, and again when what it says has changed.

use trainjob_api::time::Timestamp;

/// For so long an object may have been terminating before its users are told, in seconds (`docs/retention.md`, R36).
pub const STUCK_AFTER: i64 = 600;

/// Something to tell the users of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Its time has come, and its hold keeps it until then.
    Held {
        /// When the hold ends.
        until: Timestamp,
    },
    /// Its hold, which was longer than an hour, ends then, within an hour.
    HoldEnding {
        /// When.
        until: Timestamp,
    },
    /// Its hold asks for more than it gets: it ends then.
    HoldCapped {
        /// When.
        until: Timestamp,
    },
    /// Its hold cannot be read, so it is held as long as that may be.
    HoldInvalid {
        /// Until when.
        until: Timestamp,
    },
    /// The TTL in its annotation cannot be read.
    OverrideInvalid,
    /// The TTL in its annotation is out of bounds: it is due then.
    OverrideClamped {
        /// When.
        due: Timestamp,
    },
    /// It has been terminating for ten minutes.
    StuckTerminating {
        /// Since when.
        since: Timestamp,
    },
}
