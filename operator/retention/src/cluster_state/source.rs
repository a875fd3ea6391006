//! What is watched.

use trainjob_retention_core::stored::PolicyKind;

use crate::key::TargetId;

/// What is watched. Each has a watch of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The policies of a kind.
    Policies(PolicyKind),
    /// The namespaces.
    Namespaces,
    /// The objects of a target kind.
    Target(TargetId),
}
