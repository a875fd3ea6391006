//! Policies as they are stored: the seam to the branch that reads them.

use std::{num::NonZeroU32, sync::Arc};

use trainjob_retention_core::policy::{Policy, UnreadablePolicy};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyKind {
    Namespaced,
    Cluster,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    pub group: Arc<str>,
    pub kind: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPolicy {
    pub target: GroupKind,
    pub policy: Arc<Policy>,
    pub generation: i64,
    pub deletes_per_second: Option<NonZeroU32>,
    pub breaker_count: NonZeroU32,
    pub acknowledged_trip: Option<Arc<str>>,
}

#[derive(Debug)]
pub struct NotUnderstood {
    pub target: Option<GroupKind>,
    pub policy: UnreadablePolicy,
    pub generation: i64,
    pub error: std::fmt::Error,
}

impl NotUnderstood {
    #[must_use]
    pub fn concerns(&self, kind: &GroupKind) -> bool {
        self.target.as_ref().is_none_or(|target| target == kind)
    }
}
