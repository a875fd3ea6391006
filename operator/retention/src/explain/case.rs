//! An object and all that decides about it.

use std::collections::BTreeMap;

use trainjob_api::time::Timestamp;
use trainjob_core::facts::ObjectKey;
use trainjob_retention_core::{
    facts::Facts,
    keep_last::Groups,
    kind::GroupKind,
    plan::Plan,
    policies::{Governed, Policies},
    policy::{Namespace, PolicyReference},
    uid::Uid,
};

use crate::status::SeenPolicy;

/// An object and all that decides about it.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) kind: GroupKind,
    pub(super) key: ObjectKey,
    /// When all of it was read.
    pub(super) now: Timestamp,
    pub(super) namespace: Namespace,
    /// The policies for its kind.
    pub(super) policies: Policies,
    /// Policies that may be about it and are not understood, each with the reason.
    pub(super) not_understood: Vec<(PolicyReference, String)>,
    /// What the statuses of policies say, by UID.
    pub(super) seen: BTreeMap<Uid, SeenPolicy>,
    /// `None`: it has not finished in the sense of any policy.
    pub(super) facts: Option<Facts>,
    pub(super) finalizers: Vec<String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// The groups of its namespace, if a rule keeps the last of each.
    pub(super) groups: Groups,
    /// Whether targets and excluded namespaces are those of the engine.
    pub(super) is_configured: bool,
}

/// What a policy does about it.
#[derive(Debug)]
pub(super) struct Judged<'c> {
    pub(super) governed: Governed<'c, 'c>,
    pub(super) plan: Plan<'c>,
    /// What had to be asked and could not.
    pub(super) unanswered: Option<String>,
}
