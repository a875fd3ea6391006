//! The Pods that were let go and that no stored version tells of (AH2).

use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus;

use super::call::{Call, Store};

/// The Pods that were let go and that no stored version tells of.
#[derive(Debug, Default)]
pub(super) struct LetGo {
    uids: Vec<String>,
    /// Stores that tell of some, and of which it is not known whether they were carried out.
    unsure: Vec<Store>,
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

    /// A Pod was let go.
    pub(super) fn push(&mut self, uid: String) {
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
        self.uids.retain(|uid| !status.settling.contains(uid));
        stored.is_some()
    }
}
