//! What was written of the status of a policy, and when that is to be done again.

use std::time::Duration;

use tokio::time::Instant;
use trainjob_retention_core::breaker::Record;

use super::{
    conditions::{conditions, is_said},
    found::Found,
    seen::SeenPolicy,
};

/// How often the numbers are counted and written, at most.
const COUNTED_EVERY: Duration = Duration::from_secs(30);

/// A policy, as far as its status is written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) seen: SeenPolicy,
    /// When its objects were counted last.
    pub(super) counted: Option<Instant>,
    /// When the record of its breaker was stored last.
    pub(super) stored: Option<Instant>,
    /// How it was when there was nothing to write at once.
    settled: Option<Found>,
}

impl Written {
    /// One that was never written.
    pub(super) const fn new(seen: SeenPolicy) -> Self {
        Self { seen, counted: None, stored: None, settled: None }
    }

    /// It is there in this version. Whether its spec is another one.
    pub(super) fn see(&mut self, seen: SeenPolicy) -> bool {
        let is_edited = self.seen.generation != seen.generation;
        if is_edited {
            self.counted = None;
        }
        (self.seen, self.settled) = (seen, None);
        is_edited
    }

    pub(super) fn is_to_be_counted(&self) -> bool {
        self.counted.is_none_or(|counted| counted.elapsed() >= COUNTED_EVERY)
    }

    /// Whether there may be something to write.
    pub(super) fn is_due(&mut self, found: &Found) -> bool {
        if self.is_to_be_counted() {
            return true;
        }
        // This is asked every second, and most of the time the answer is the same.
        if self.settled.as_ref() == Some(found) {
            return false;
        }
        let said = conditions(&found.situation);
        let is_due = self.is_urgent(found.record.as_ref(), found)
            || found.situation.missing
                != self.seen.status.missing_rules.as_deref().unwrap_or_default()
            || found.situation.waiting.is_some() != self.seen.status.waiting.is_some()
            || !is_said(&said, self.seen.status.conditions.as_deref().unwrap_or_default());
        self.settled = Some(found).filter(|_| !is_due).cloned();
        is_due
    }

    /// Whether a record has to be stored at once, because deletions wait for that or may not go on, or removed.
    ///
    /// `record` may be newer than that of `found`. A policy in Enforce without a record is not judged yet: what its status
    /// says is what that will begin with.
    pub(super) fn is_urgent(&self, record: Option<&Record>, found: &Found) -> bool {
        let before = Record::read(&self.seen.status);
        let Some(record) = record else { return found.is_audited && before.is_some() };
        found.is_awaited || self.stored.is_none() || record.is_urgent(before.as_ref())
    }
}
