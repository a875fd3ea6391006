//! A policy, parsed: what it selects, and what its rules say.
//!
//! Whoever has a [`Policy`] need not check it again. Its last rule fits everything, a namespaced one has no limits, the
//! Pods of a kind that would make them again cannot be deleted, and no length is negative. A stored policy that cannot be
//! parsed is not left out, because that could let another one delete what it keeps: it becomes an [`UnreadablePolicy`],
//! and nothing is deleted that it might select.

mod error;
mod reference;
mod rule;
mod rules;

use std::{cmp::Reverse, sync::Arc};

use trainjob_api::time::Timestamp;

pub use self::{
    error::PolicyError,
    reference::PolicyReference,
    rule::{Decide, Delete, GroupValues, KeepLast, Lifetime, Match, Phases, PodsStage},
    rules::{Rule, RuleAction, Rules},
};
use crate::{
    finished::{
        Definition,
        configured::{Configured, Description},
    },
    kind::BuiltIn,
    labels::Labels,
    seconds::Seconds,
    selector::Selector,
    uid::Uid,
};

/// A policy for the objects of one kind (`docs/retention.md`, 2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The name.
    pub name: Arc<str>,
    /// Which of all policies that ever had this name.
    pub uid: Uid,
    /// When it was created.
    pub created: Timestamp,
    /// Where it applies.
    pub scope: Scope,
    /// Which objects it is about.
    pub selector: Selector,
    /// Whether it decides.
    pub mode: Mode,
    /// Within a scope the higher goes first.
    pub priority: i32,
    /// What finished means to it.
    pub definition: Arc<Definition>,
    /// What it says of a finished object.
    pub rules: Rules,
    /// What becomes of objects that a controller owns.
    pub owned: Owned,
    /// Whether an object may bring a TTL by annotation.
    pub annotation: Annotation,
    /// Whether the kind's own TTL goes before the rules.
    pub own_ttl: OwnTtl,
    /// How far a hold reaches beyond due; zero: holds do not count.
    pub maximum_hold: Seconds,
    /// How dependents go.
    pub propagation: Propagation,
}

/// A policy that cannot be parsed, as far as it is known what it could select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadablePolicy {
    /// Where it applies, in the widest sense that its text can have.
    pub reach: Reach,
    /// Which objects it is about, likewise.
    pub selector: Selector,
}

/// Where a policy may apply that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Where a policy of this scope applies.
    Scope(Scope),
    /// In any namespace, the excluded ones included: it may name them.
    Everywhere,
}

/// Where a policy applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// In one namespace.
    Namespace(Arc<str>),
    /// In all namespaces that this selects but for the excluded ones, which it has to name.
    Cluster {
        /// Which namespaces.
        namespaces: Selector,
        /// Bounds for all objects that it selects, whichever policy governs them.
        limits: Limits,
    },
}

/// Bounds that a cluster policy sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    minimum: Option<Seconds>,
    maximum: Option<Seconds>,
    maximum_hold: Option<Seconds>,
}

/// Whether a policy decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It shows what it would do.
    Audit,
    /// It does it.
    Enforce,
}

/// What becomes of objects that a controller owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owned {
    /// They are left alone.
    Skip,
    /// They wait until their owner has finished or is gone.
    AfterOwner,
    /// They go like others.
    Any,
}

/// Whether an object may bring a TTL by annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotation {
    /// It may.
    Allowed,
    /// Such an annotation does not count.
    Ignored,
}

/// Whether the kind's own TTL goes before the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnTtl {
    /// It does.
    Respected,
    /// It does not count.
    Ignored,
}

/// How the dependents of a deleted object go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Before it.
    Foreground,
    /// After it.
    Background,
}

/// A namespace, as far as policies depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: Arc<str>,
    /// The labels that policies read.
    pub labels: Labels,
    /// Whether it is being deleted, and everything in it.
    pub terminating: bool,
    /// Whether cluster policies have to name it (`docs/retention.md`, R37).
    pub excluded: bool,
}

/// The label that every namespace has with its name.
pub const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The namespaces of Kubernetes itself, which are excluded everywhere.
pub const SYSTEM_NAMESPACES: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// What finished means for a kind, by this description or by what is known.
///
/// # Errors
///
/// If there is neither, or nothing in the description tells an end.
pub fn definition(
    (group, kind): (&str, &str),
    description: Option<Description>,
) -> Result<Definition, PolicyError> {
    match description {
        Some(description) => Ok(Definition::Configured(Box::new(Configured::new(description)?))),
        None => BuiltIn::of(group, kind).map(Definition::BuiltIn).ok_or(PolicyError::UnknownKind),
    }
}

impl Limits {
    /// Bounds; each may be absent.
    ///
    /// # Errors
    ///
    /// If the minimum is above the maximum.
    pub fn new(
        minimum: Option<Seconds>,
        maximum: Option<Seconds>,
        maximum_hold: Option<Seconds>,
    ) -> Result<Self, PolicyError> {
        if let (Some(minimum), Some(maximum)) = (minimum, maximum)
            && minimum > maximum
        {
            return Err(PolicyError::LimitsCross {
                minimum: minimum.get(),
                maximum: maximum.get(),
            });
        }
        Ok(Self { minimum, maximum, maximum_hold })
    }

    /// The least value.
    #[must_use]
    pub const fn minimum(&self) -> Option<Seconds> {
        self.minimum
    }

    /// The largest value.
    #[must_use]
    pub const fn maximum(&self) -> Option<Seconds> {
        self.maximum
    }

    /// How far a hold reaches beyond due at most.
    #[must_use]
    pub const fn maximum_hold(&self) -> Option<Seconds> {
        self.maximum_hold
    }
}

impl Scope {
    /// Whether it applies in a namespace.
    #[must_use]
    pub fn includes(&self, namespace: &Namespace) -> bool {
        match self {
            Self::Namespace(name) => *name == namespace.name,
            Self::Cluster { namespaces, .. } => {
                let may =
                    !namespace.excluded || namespaces.names(NAMESPACE_NAME_LABEL, &namespace.name);
                may && namespaces.matches(&namespace.labels)
            }
        }
    }
}

impl Reach {
    /// Whether it may apply in a namespace.
    #[must_use]
    pub fn includes(&self, namespace: &Namespace) -> bool {
        match self {
            Self::Scope(scope) => scope.includes(namespace),
            Self::Everywhere => true,
        }
    }

    /// The scope, as far as it is known.
    #[must_use]
    pub const fn scope(&self) -> Option<&Scope> {
        match self {
            Self::Scope(scope) => Some(scope),
            Self::Everywhere => None,
        }
    }
}

impl Policy {
    /// As people name it.
    #[must_use]
    pub fn reference(&self) -> PolicyReference {
        let namespace = match &self.scope {
            Scope::Namespace(name) => Some(Arc::clone(name)),
            Scope::Cluster { .. } => None,
        };
        PolicyReference { namespace, name: Arc::clone(&self.name) }
    }

    /// The bounds it sets.
    #[must_use]
    pub fn limits(&self) -> Limits {
        match &self.scope {
            Scope::Namespace(_) => Limits::default(),
            Scope::Cluster { limits, .. } => *limits,
        }
    }

    /// The keys of the labels of objects that it reads.
    pub fn label_keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.selector.keys().chain(self.rules.label_keys())
    }

    /// Where it stands among all policies (`docs/retention.md`, R20): namespaced ones before those of the cluster, then
    /// by priority, age and name. No two policies of a cluster stand at the same place.
    #[must_use]
    pub fn order(&self) -> impl Ord + use<'_> {
        let (of_cluster, namespace) = match &self.scope {
            Scope::Namespace(name) => (false, Some(name)),
            Scope::Cluster { .. } => (true, None),
        };
        (of_cluster, Reverse(self.priority), self.created, &self.name, namespace, &self.uid)
    }
}

#[cfg(test)]
mod tests;
