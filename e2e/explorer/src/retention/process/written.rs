//! What a replica knows of the status of a policy.

use std::collections::BTreeMap;

use trainjob_retention_core::{breaker::Record, uid::Uid};

use crate::retention::{objects::Policy, rules::PolicyId};

/// How often a record is stored that has nothing urgent, in milliseconds.
const STORED_EVERY: i64 = 60_000;

/// The status of a policy, as far as a replica writes it.
#[derive(Debug, Clone)]
pub struct Written {
    /// Which policy.
    pub uid: u64,
    pub(super) version: u64,
    /// What it says for the breaker.
    pub record: Option<Record>,
    /// When the record was stored last, by this replica.
    pub(super) stored: Option<i64>,
}

impl Written {
    /// A policy was seen.
    pub(super) fn see(written: &mut BTreeMap<PolicyId, Self>, id: PolicyId, policy: &Policy) {
        let stored = written.get(&id).and_then(|known| known.stored);
        let record = policy.record.clone();
        let seen = Self { uid: policy.uid, version: policy.version, record, stored };
        written.insert(id, seen);
    }

    /// Whether a record has to be stored at once.
    pub(super) fn is_urgent(&self, record: Option<&Record>, is_audited: bool) -> bool {
        record.is_some_and(|record| self.stored.is_none() || record.is_urgent(self.record.as_ref()))
            || record.is_none() && is_audited && self.record.is_some()
    }

    pub(super) fn is_old(&self, monotonic: i64) -> bool {
        self.stored.is_none_or(|stored| monotonic - stored >= STORED_EVERY)
    }
}

/// The UID of a policy, as the program knows it.
#[must_use]
pub fn policy_uid(uid: u64) -> Uid {
    Uid::from(format!("p{uid:08}").as_str())
}
