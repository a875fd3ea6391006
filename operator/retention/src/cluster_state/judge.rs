//! What the breakers of policies are told and asked (`docs/retention.md`, R40 to R43).

use std::{sync::Arc, time::Duration};

use trainjob_core::Now;
use trainjob_retention_core::{
    breaker::{Record, Trip, WaitingObjects},
    policy::Mode,
    uid::Uid,
};

use super::{ClusterState, breakers::Judgement};
use crate::key::{Key, TargetId};

/// A jump of the clock by more than so many seconds trips all policies (R46).
const LARGEST_STEP: u64 = 300;

impl ClusterState {
    /// Tells the breaker whether an object is due.
    pub(super) fn observe(&mut self, key: &Key, now: Now) {
        let (Some(kind), Some(reached)) = (self.kinds.get_mut(key.target.0), now.reached()) else {
            return;
        };
        let policies = kind.there(&mut self.namespaces, &key.object.namespace);
        kind.observe(&key.object, &policies, &mut self.breakers, reached);
    }

    /// Trips all policies if the API server's clock has jumped (R46). To be called before any look: the first after a jump may
    /// be sooner than the next judgement.
    pub fn notice_time(&mut self, now: Now, monotonic: Duration) {
        let Some(reached) = now.reached() else { return };
        let passed = i64::try_from(monotonic.as_secs()).unwrap_or(i64::MAX);
        let offset = reached.plus(passed.saturating_neg()).0;
        let before = self.clock_offset.replace(offset);
        if before.is_some_and(|before| before.abs_diff(offset) > LARGEST_STEP) {
            tracing::warn!("the API server's clock has jumped; all policies that enforce trip");
            let understood = self.book.iter().filter_map(|(_, stored)| stored.as_ref().ok());
            let enforcing = understood.filter(|stored| stored.policy.mode == Mode::Enforce);
            self.breakers.step_clock(enforcing.map(|stored| &stored.policy.uid), reached);
        }
    }

    /// Judges all policies for which anything has changed, or for which it is time (R42). To be called every second, so
    /// that a jump of the clock is noticed.
    pub fn judge(&mut self, now: Now, monotonic: Duration) -> Vec<Judgement> {
        let Some(reached) = now.reached() else { return Vec::new() };
        self.notice_time(now, monotonic);
        for (target, namespace) in self.flows.take_ready(monotonic) {
            self.look_again_in(target, &namespace);
        }
        let judgements = self.breakers.judge(reached);
        for judgement in judgements.iter().filter(|judgement| judgement.lets_go) {
            self.queue_again(judgement.target);
        }
        judgements
    }

    /// What is to be stored of a policy in its status (R40); `None` if it was not judged.
    #[must_use]
    pub fn record(&self, policy: &Uid) -> Option<Record> {
        self.breakers.record(policy)
    }

    /// Whether deletions under a policy wait until its record is stored (R40).
    #[must_use]
    pub fn awaits_storage(&self, policy: &Uid) -> bool {
        self.breakers.awaits_storage(policy)
    }

    /// A record was stored.
    pub fn stored_record(&mut self, policy: &Uid, record: Record) {
        if let Some(target) = self.breakers.stored(policy, record) {
            self.queue_again(target);
        }
    }

    /// What waits for an acknowledgement under a policy.
    #[must_use]
    pub fn tripped(&self, policy: &Uid) -> Option<&Trip> {
        self.breakers.tripped(policy)
    }

    /// What is unexpected under a policy and waits where it has not tripped (R41).
    #[must_use]
    pub fn waiting(&self, policy: &Uid) -> Option<WaitingObjects> {
        self.breakers.waiting(policy)
    }

    /// How many objects are unexpected under a policy and wait (R41).
    #[must_use]
    pub fn unexpected(&self, policy: &Uid) -> u64 {
        self.breakers.unexpected(policy)
    }

    /// Objects of a kind in a namespace may go that could not go before: what is there is looked at again.
    pub(super) fn look_again_in(&mut self, target: TargetId, namespace: &Arc<str>) {
        if let Some(kind) = self.kinds.get_mut(target.0) {
            kind.stale.add([namespace]);
        }
    }

    /// How many flows of deletions back off (R35).
    #[must_use]
    pub fn backing_off(&self) -> usize {
        self.flows.backing_off()
    }

    /// Objects of a kind may go that could not go before: all that are due are queued.
    pub(super) fn queue_again(&mut self, target: TargetId) {
        if let Some(kind) = self.kinds.get_mut(target.0) {
            kind.evaluation.queue_again();
        }
    }
}
