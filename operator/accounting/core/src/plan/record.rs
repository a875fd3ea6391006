//! A record, and what may be concluded from it.

use std::time::Duration;

use trainjob_api::lifecycle::v1alpha1::{
    record::TrainJobRecordStatus, record_words::RecordCondition,
};

use super::condition;
use crate::holding::Valve;

/// A record, as far as this process knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The newest version that is known; `None`: there is no record.
    pub status: Option<Box<TrainJobRecordStatus>>,
    /// What may be concluded from it.
    pub evidence: Evidence,
    /// How its writes go.
    pub valve: Valve,
    /// When this process last stored it, by the monotonic clock.
    pub stored_at: Option<Duration>,
    /// Pods that were let go since the last store, which no stored version tells of (AH2).
    pub let_go: u64,
    /// Whether it was deleted and made anew, as this process has seen.
    pub recreated: bool,
    /// Whether its Pods were listed since this version was read, and one had been released that this process has not let go.
    pub has_released: bool,
}

impl Default for Record {
    /// Nothing is known.
    fn default() -> Self {
        Self {
            status: None,
            evidence: Evidence::Unproven,
            valve: Valve::Shut,
            stored_at: None,
            let_go: 0,
            recreated: false,
            has_released: false,
        }
    }
}

impl Record {
    /// This status was stored by this process: what had to be told is told.
    pub fn stored(&mut self, status: TrainJobRecordStatus, clock: Duration) {
        self.status = Some(Box::new(status));
        self.stored_at = Some(clock);
        self.valve = Valve::Shut;
        if let Evidence::Proven { unwatched, .. } = &mut self.evidence {
            *unwatched = 0;
        }
    }

    /// Whether it was deleted and made anew. If nothing is stored in it and a Pod was released, that Pod is told of in one that
    /// is gone, and who made this one ended before it could say so.
    #[must_use]
    pub fn is_recreated(&self) -> bool {
        let is_new = self.status.as_ref().is_some_and(|it| it.as_of.is_none());
        self.recreated || is_new && self.has_released
    }

    /// Whether nothing will be added.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.status.as_ref().is_some_and(|it| condition::is_true(it, RecordCondition::Final))
    }
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
