//! What there is to say about a policy.

use std::sync::Arc;

use trainjob_retention_core::{breaker::Record, stored::Digest, uid::Uid};

use super::conditions::Situation;
use crate::{cluster_state::PolicyKey, key::TargetId};

/// A policy as the state has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) key: PolicyKey,
    pub(super) uid: Option<Uid>,
    /// The generation that was read of it, and the digest of that; `None`: it is not understood.
    pub(super) digest: Option<(i64, Digest)>,
    pub(super) target: Option<TargetId>,
    pub(super) rules: Vec<Arc<str>>,
    pub(super) situation: Situation,
    pub(super) record: Option<Record>,
    /// Whether deletions wait until the record is stored.
    pub(super) is_awaited: bool,
    /// Whether it is in Audit, so that its status has no record.
    pub(super) is_audited: bool,
}

#[cfg(test)]
impl Found {
    /// A policy in Audit whose kind is known.
    pub(super) fn audited() -> Self {
        use trainjob_retention_core::{policy::Mode, stored::PolicyKind};

        let situation = Situation { mode: Ok(Mode::Audit), ..Situation::good() };
        let key = PolicyKey { kind: PolicyKind::Cluster, namespace: "".into(), name: "p".into() };
        Self {
            key,
            uid: None,
            digest: None,
            target: None,
            rules: Vec::new(),
            situation,
            record: None,
            is_awaited: false,
            is_audited: true,
        }
    }
}
