//! What was written of the status of a policy, and when that is to be done again.

use std::time::Duration;

use tokio::time::Instant;
use trainjob_api::lifecycle::v1alpha1::status::RetentionPolicyStatus;
use trainjob_engine::{jitter, versions};
use trainjob_retention_core::breaker::Record;

use super::{
    conditions::{conditions, is_said},
    found::Found,
    seen::SeenPolicy,
};

/// How often the numbers are counted and written, at most.
const COUNTED_EVERY: Duration = Duration::from_secs(30);
/// How often the record of a breaker is stored that has nothing urgent, at most.
const STORED_EVERY: Duration = Duration::from_mins(1);
/// First and longest wait before a status that could not be written is written again.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

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
    /// The version that the last write of this process made; 0 if there was none.
    wrote: u64,
    /// From when on it may be written again after that failed, and how long that is from then.
    again: Option<(Instant, Duration)>,
}

impl Written {
    /// One that was never written.
    pub(super) const fn new(seen: SeenPolicy) -> Self {
        Self { seen, counted: None, stored: None, settled: None, wrote: 0, again: None }
    }

    /// It is there in this version. Whether its spec is another one.
    pub(super) fn see(&mut self, seen: SeenPolicy) -> bool {
        if self.has_replaced(&seen) {
            return false;
        }
        self.again = None;
        let is_edited = self.seen.generation != seen.generation;
        if is_edited {
            self.counted = None;
        }
        (self.seen, self.settled) = (seen, None);
        is_edited
    }

    /// Whether a write of this process has replaced this version. What the watch tells of it comes late and says nothing new,
    /// because a write goes on from the newest version (R40). Of what was written it may tell nothing
    /// ([`OwnWrites`](super::OwnWrites)), so nothing would bring that back. What others wrote may be older than what was seen
    /// before: so it is once a backup of etcd was restored.
    fn has_replaced(&self, seen: &SeenPolicy) -> bool {
        self.seen.uid == seen.uid && versions::parse(&seen.resource_version) < self.wrote
    }

    /// It was written: it has this status and is in this version.
    pub(super) fn wrote(&mut self, status: RetentionPolicyStatus, version: String) {
        self.wrote = versions::parse(&version);
        (self.seen.status, self.seen.resource_version) = (status, version);
        self.again = None;
    }

    /// A write of it has failed, and is tried again, each time later. Whether that is the first one.
    pub(super) fn failed(&mut self) -> bool {
        let wait = self.again.map_or(BACKOFF.0, |(_, wait)| wait.saturating_mul(2).min(BACKOFF.1));
        self.again.replace((Instant::now() + jitter(wait), wait)).is_none()
    }

    pub(super) fn is_to_be_counted(&self) -> bool {
        self.counted.is_none_or(|counted| counted.elapsed() >= COUNTED_EVERY)
    }

    /// Whether there may be something to write.
    pub(super) fn is_due(&mut self, found: &Found) -> bool {
        if self.again.is_some_and(|(at, _)| Instant::now() < at) {
            return false;
        }
        if self.is_to_be_counted() {
            return true;
        }
        // This is asked every second, and most of the time the answer is the same.
        if self.settled.as_ref() == Some(found) {
            return false;
        }
        let said = conditions(&found.situation);
        let is_due = self.is_urgent(found.record.as_ref(), found)
            || found.situation.missing.rules
                != self.seen.status.missing_rules.as_deref().unwrap_or_default()
            || found.situation.waiting.is_some() != self.seen.status.waiting.is_some()
            || !is_said(&said, self.seen.status.conditions.as_deref().unwrap_or_default());
        self.settled = Some(found).filter(|_| !is_due).cloned();
        is_due
    }

    /// Whether this record is stored, or removed, by the next write.
    pub(super) fn stores(&self, record: Option<&Record>, found: &Found) -> bool {
        let is_old = |stored: Instant| stored.elapsed() >= STORED_EVERY;
        self.is_urgent(record, found) || record.is_some() && self.stored.is_none_or(is_old)
    }

    /// Whether this record is to be stored even if the status says the same: only an answer tells that it is stored. A policy
    /// that is not judged has none.
    pub(super) fn awaits(&self, record: Option<&Record>, found: &Found) -> bool {
        record.is_some() && (found.is_awaited || self.stored.is_none())
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
