//! The Pods that were let go and that no stored version tells of (AH2).

use std::collections::BTreeSet;

use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus;

use super::call::{Call, Store};
use crate::pod::Pod;

/// The Pods that were let go and that no stored version tells of.
#[derive(Debug, Default)]
pub(super) struct LetGo {
    uids: Vec<String>,
    /// Stores that tell of some, and of which it is not known whether they were carried out.
    unsure: Vec<Store>,
    /// UIDs of Pods of which a request to let them go is under way.
    under_way: BTreeSet<String>,
    /// Those of them that the last list did not show, or as released. Their answers tell whether they went unseen.
    unlisted: BTreeSet<String>,
    /// How many Pods were missing in that list and are not told of as unwatched, because they may be among those. Others of
    /// those may have been counted before.
    missing: u64,
    /// UIDs of Pods of which it is not known whether they were let go.
    unsure_of: BTreeSet<String>,
}

impl LetGo {
    pub(super) const fn is_empty(&self) -> bool {
        self.uids.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.uids.len()
    }

    pub(super) fn count(&self) -> u64 {
        count(self.uids.len())
    }

    /// A request to let a Pod go is sent.
    pub(super) fn sent(&mut self, uid: &str) {
        self.under_way.insert(uid.to_owned());
    }

    /// It was answered, or failed; maybe because its Pod had gone by itself. How many of the missing Pods are now known to have
    /// gone unseen: those beyond the answers that are still to come.
    pub(super) fn answered(&mut self, uid: &str, went_by_itself: bool) -> u64 {
        self.under_way.remove(uid);
        if self.unlisted.remove(uid) && !went_by_itself {
            self.missing = self.missing.saturating_sub(1);
        }
        let may_be_missing = self.missing.min(count(self.unlisted.len()));
        let unseen = self.missing - may_be_missing;
        self.missing = may_be_missing;
        unseen
    }

    /// Whether one is under way.
    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// How many of the Pods that a list does not show went unseen: those that were let go did not, nor is that known of those of
    /// which a request to let them go is under way, whose answers tell. A Pod that is shown as released was let go by such a
    /// request, and counts as one that is not shown ([`unwatched`](crate::plan::unwatched)).
    pub(super) fn unseen<'p>(&mut self, gone: u64, listed: impl Iterator<Item = &'p Pod>) -> u64 {
        let listed = listed.filter(|pod| !pod.accounted);
        let listed: BTreeSet<_> = listed.map(|pod| &*pod.uid).collect();
        let unlisted = self.under_way.iter().filter(|uid| !listed.contains(uid.as_str()));
        self.unlisted = unlisted.cloned().collect();
        let unseen = gone.saturating_sub(self.count());
        self.missing = unseen.min(count(self.unlisted.len()));
        unseen - self.missing
    }

    /// It is not known whether a request to let a Pod go was carried out.
    pub(super) fn unsure_of(&mut self, uid: &str) {
        self.unsure_of.insert(uid.to_owned());
    }

    /// Whether this version of a Pod shows that a request to let it go was carried out that failed. If another is under way,
    /// its answer tells.
    pub(super) fn is_shown_by(&self, pod: &Pod) -> bool {
        let is_released = pod.accounted && !pod.finalizer;
        is_released && self.may_have(&pod.uid) && !self.under_way.contains(&*pod.uid)
    }

    /// Whether one may have been carried out that failed.
    pub(super) fn may_have(&self, uid: &str) -> bool {
        self.unsure_of.contains(uid)
    }

    /// Whether a Pod was let go, or may be.
    pub(super) fn has(&self, uid: &str) -> bool {
        self.uids.iter().any(|it| it == uid) || self.under_way.contains(uid) || self.may_have(uid)
    }

    /// A Pod was let go.
    pub(super) fn push(&mut self, uid: String) {
        self.unsure_of.remove(&uid);
        self.uids.push(uid);
    }

    /// So many of them, the first, are told of in what is stored. What was sent before cannot be stored any more.
    pub(super) fn told(&mut self, tells: usize) {
        self.uids.drain(..tells.min(self.uids.len()));
        self.unsure.clear();
    }

    /// It is not known whether this was carried out.
    pub(super) fn unanswered(&mut self, call: &Call) {
        if let Call::Store(store) = call
            && store.tells > 0
        {
            self.unsure.push((**store).clone());
        }
    }

    /// A status was read. What it counts was not lost. Whether it is one of those of which it was not known whether they are
    /// stored.
    pub(super) fn read(&mut self, status: &TrainJobRecordStatus) -> bool {
        let is_it = |store: &&Store| {
            (&store.status.as_of, &store.status.lost) == (&status.as_of, &status.lost)
        };
        let stored = self.unsure.iter().find(is_it).map(|store| store.tells);
        if let Some(tells) = stored {
            self.told(tells);
        }
        self.counted(&status.settling);
        stored.is_some()
    }

    /// What is counted was not lost, though it was let go.
    pub(super) fn counted(&mut self, settling: &[String]) {
        self.uids.retain(|uid| !settling.contains(uid));
    }
}

fn count(length: usize) -> u64 {
    length.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::iter::empty;

    use super::*;

    /// Of `a`, `b` and `c`, which a list did not show, two were missing; what is told of as unwatched when they are answered.
    #[test]
    fn pods_that_were_missing_went_unseen_once_no_answer_can_tell_otherwise() {
        for (went_by_themselves, expected) in [
            ([false, false, false], [0, 0, 0]),
            ([true, false, false], [0, 0, 0]),
            ([true, true, false], [0, 1, 0]),
            ([false, true, true], [0, 0, 1]),
            ([true, true, true], [0, 1, 1]),
        ] {
            let mut let_go = LetGo::default();
            for uid in ["a", "b", "c"] {
                let_go.sent(uid);
            }
            assert_eq!(let_go.unseen(2, empty()), 0);
            let answered = ["a", "b", "c"].into_iter().zip(went_by_themselves);
            let told: Vec<_> = answered.map(|(uid, went)| let_go.answered(uid, went)).collect();
            assert_eq!(told, expected, "{went_by_themselves:?}");
        }
    }

    #[test]
    fn pods_that_are_missing_beyond_those_that_are_let_go_went_unseen_at_once() {
        let mut let_go = LetGo::default();
        let_go.sent("a");
        let_go.push("b".to_owned());
        assert_eq!(let_go.unseen(4, empty()), 2);
        assert_eq!(let_go.answered("a", true), 1);
    }
}
