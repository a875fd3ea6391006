//! Under which digest a replica knows each policy, and what was due for it from then on (R42).

use std::collections::{BTreeMap, BTreeSet};

use trainjob_core::Now;

use super::{Process, since::Since, written::policy_uid};
use crate::retention::{objects::Policy, server::Server};

impl Process {
    /// A policy has this digest. Whoever sees that it is edited and edited back before it has judged that goes on with what
    /// it has judged before: no digest is new to it (R42).
    pub(super) fn note_digest(&mut self, policy: &Policy, digest: String, server: &Server) {
        let uid = policy.uid;
        if !policy.spec.enforces {
            self.since.remove(&uid);
            self.judged_since.remove(&uid);
            return;
        }
        if let Some(since) = self.since.get(&uid).filter(|since| self.is_judged(uid, &since.digest))
        {
            self.judged_since.insert(uid, since.clone());
        }
        if self.since.get(&uid).is_some_and(|since| since.digest == digest) {
            return;
        }
        let before = self.judged_since.get(&uid).filter(|since| since.digest == digest);
        let before = before.filter(|_| self.is_judged(uid, &digest)).cloned();
        let new = |process: &Self| Since { due: process.due_under(uid, server), digest };
        let since = before.unwrap_or_else(|| new(self));
        self.since.insert(uid, since);
    }

    /// Everything is evaluated from the beginning.
    pub(super) fn counts_anew(&mut self, server: &Server) {
        let not_judged: Vec<u64> =
            self.since.keys().copied().filter(|uid| !self.has_judged(*uid)).collect();
        for uid in not_judged {
            let due = self.due_under(uid, server);
            if let Some(since) = self.since.get_mut(&uid) {
                since.due = due;
            }
        }
    }

    /// What it knows has changed, or the time: what is not due any more for it does not count, though it may be due again later.
    pub(super) fn note_due(&mut self, server: &Server) {
        let Now::Known { earliest, .. } = self.now(server) else { return };
        if !self.leads || self.since.values().all(|since| since.due.is_empty()) {
            return;
        }
        let due = self.view.due(&self.owners, earliest.0);
        let judged: BTreeSet<u64> =
            self.since.keys().copied().filter(|uid| self.has_judged(*uid)).collect();
        for (uid, since) in &mut self.since {
            since.due.retain(|job, instant| {
                let now = due.get(job).filter(|(by, _)| by == uid);
                if let Some((_, now)) = now.filter(|_| !judged.contains(uid)) {
                    *instant = *now;
                }
                now.is_some()
            });
        }
    }

    fn has_judged(&self, policy: u64) -> bool {
        self.since.get(&policy).is_some_and(|since| self.is_judged(policy, &since.digest))
    }

    /// What it has judged of a policy under this digest, if it knows of no other by now.
    pub(super) fn judged(&self, policy: u64, digest: &str) -> Option<&Since> {
        self.since.get(&policy).filter(|since| since.digest == digest)
    }

    fn is_judged(&self, policy: u64, digest: &str) -> bool {
        let record = self.state.record(&policy_uid(policy));
        record.is_some_and(|record| *record.digest == *digest)
    }

    /// What it knows to be due under a policy, and of whose owner it does not know otherwise.
    fn due_under(&self, policy: u64, server: &Server) -> BTreeMap<u64, i64> {
        let now = match self.now(server) {
            Now::Known { earliest, .. } => earliest.0,
            Now::Held { likely } => likely.0,
        };
        let due = self.view.due(&self.owners, now).into_iter();
        due.filter(|(_, (by, _))| *by == policy).map(|(job, (_, since))| (job, since)).collect()
    }
}
