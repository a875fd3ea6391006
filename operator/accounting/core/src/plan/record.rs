//! A record, and what may be concluded from it.

use std::time::Duration;

use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus;

use crate::holding::Valve;

/// A record, as far as this process knows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// There is none.
    Missing,
    /// There is one.
    Stored(Box<Stored>),
}

/// A stored record.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The newest version that is known.
    pub status: TrainJobRecordStatus,
    /// What may be concluded from it.
    pub evidence: Evidence,
    /// How its writes go.
    pub valve: Valve,
    /// When this process last stored it, by the monotonic clock.
    pub stored_at: Option<Duration>,
    /// Pods that were let go since the last store, which no stored version tells of (AH2).
    pub let_go: u64,
    /// Whether it was deleted and made anew.
    pub recreated: bool,
}

/// What may be concluded from a version of a record (AG5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Somebody else wrote it, or may have: the Pods may be older.
    Unproven,
    /// Only this process has written it since the record was read and, after that, its Pods were listed.
    Proven {
        /// Pods that went unseen before that: what [`unwatched`](super::unwatched) found.
        unwatched: u64,
        /// Whether the list was made after the TrainJob had finished or gone.
        listed_after_end: bool,
    },
}
