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
    /// Those of them that a list did not show and that are not told of as unwatched, since their answers tell.
    withheld: BTreeSet<String>,
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
        self.uids.len().try_into().unwrap_or(u64::MAX)
    }

    /// A request to let a Pod go is sent.
    pub(super) fn sent(&mut self, uid: &str) {
        self.under_way.insert(uid.to_owned());
    }

    /// It was answered, or failed. Whether its Pod was left out of what is told of as unwatched.
    pub(super) fn answered(&mut self, uid: &str) -> bool {
        self.under_way.remove(uid);
        self.withheld.remove(uid)
    }

    /// Whether one is under way.
    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// How many of the Pods that a list does not show went unseen: those that were let go did not, nor is that known of those of
    /// which a request to let them go is under way, whose answers tell.
    pub(super) fn unseen<'p>(&mut self, gone: u64, listed: impl Iterator<Item = &'p Pod>) -> u64 {
        let listed: BTreeSet<_> = listed.map(|pod| &*pod.uid).collect();
        let mut unseen = gone.saturating_sub(self.count());
        for uid in self.under_way.iter().filter(|uid| !listed.contains(uid.as_str())) {
            if unseen > 0 {
                unseen -= 1;
                self.withheld.insert(uid.clone());
            }
        }
        unseen
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
