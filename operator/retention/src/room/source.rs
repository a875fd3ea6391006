//! What is watched.

use crate::{key::TargetId, stored::PolicyKind};

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
