//! The policies as they are stored, of both kinds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use trainjob_retention_core::{
    kind::{BuiltIn, GroupKind},
    policies::Policies,
    stored::{NotUnderstood, PolicyKind, StoredPolicy},
    uid::Uid,
};

/// Which policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyKey {
    /// Its kind.
    pub kind: PolicyKind,
    /// Its namespace; empty for a policy of the cluster.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// A policy as it is stored, or why it is not understood.
pub type Stored = Result<StoredPolicy, Box<NotUnderstood>>;

/// Which kinds are affected by a change of policies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Affected {
    /// None.
    #[default]
    None,
    /// These.
    Kinds(BTreeSet<GroupKind>),
    /// All: somewhere a policy may be about any kind.
    All,
}

impl Affected {
    /// Whether this kind is.
    pub(super) fn includes(&self, kind: &GroupKind) -> bool {
        match self {
            Self::None => false,
            Self::Kinds(kinds) => kinds.contains(kind),
            Self::All => true,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, other) | (other, Self::None) => other,
            (Self::Kinds(mut kinds), Self::Kinds(others)) => {
                kinds.extend(others);
                Self::Kinds(kinds)
            }
            (Self::All, _) | (_, Self::All) => Self::All,
        }
    }
}

/// All policies.
#[derive(Debug, Default)]
pub(super) struct Book {
    stored: BTreeMap<PolicyKey, Stored>,
    missing: BTreeSet<PolicyKey>,
    listed: BTreeSet<PolicyKind>,
}

impl Book {
    /// Whether all policies of both kinds are known.
    pub(super) fn is_listed(&self) -> bool {
        self.listed.len() == 2
    }

    /// A list of the policies of a kind begins.
    pub(super) fn list_begins(&mut self, kind: PolicyKind) {
        let known = self.stored.keys().filter(|key| key.kind == kind);
        let known: Vec<_> = known.cloned().collect();
        self.missing.extend(known);
    }

    /// A list of the policies of a kind has ended. Returns which policies are gone.
    pub(super) fn list_ends(&mut self, kind: PolicyKind) -> (Vec<PolicyKey>, Affected) {
        self.listed.insert(kind);
        let missing = std::mem::take(&mut self.missing);
        let (gone, others): (BTreeSet<_>, _) =
            missing.into_iter().partition(|key| key.kind == kind);
        self.missing = others;
        let affected = gone.iter().map(|key| self.gone(key)).fold(Affected::None, Affected::and);
        (gone.into_iter().collect(), affected)
    }

    /// A policy is there, in this version. Returns which kinds are affected.
    pub(super) fn seen(&mut self, key: PolicyKey, stored: Stored) -> Affected {
        self.missing.remove(&key);
        if self.stored.get(&key).is_some_and(|known| is_same(known, &stored)) {
            return Affected::None;
        }
        let affected = affected(&stored);
        match self.stored.insert(key, stored) {
            Some(old) => affected.and(self::affected(&old)),
            None => affected,
        }
    }

    /// A policy is gone. Returns which kinds are affected.
    pub(super) fn gone(&mut self, key: &PolicyKey) -> Affected {
        self.stored.remove(key).map_or(Affected::None, |old| affected(&old))
    }

    /// A policy.
    pub(super) fn get(&self, key: &PolicyKey) -> Option<&Stored> {
        self.stored.get(key)
    }

    /// All policies, by their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&PolicyKey, &Stored)> {
        self.stored.iter()
    }

    /// The policies for a kind that are understood.
    pub(super) fn about<'b>(
        &'b self,
        kind: &'b GroupKind,
    ) -> impl Iterator<Item = &'b StoredPolicy> {
        let understood = self.stored.values().filter_map(|stored| stored.as_ref().ok());
        understood.filter(move |stored| stored.target == *kind)
    }

    /// The policies for a kind, as decisions are made by them.
    pub(super) fn policies(&self, kind: &GroupKind, built_in: Option<BuiltIn>) -> Policies {
        let understood = self.about(kind).map(|stored| Arc::clone(&stored.policy));
        let others = self.stored.values().filter_map(|stored| stored.as_ref().err());
        let others = others.filter(|other| other.concerns(kind)).map(|other| other.policy.clone());
        Policies::new(built_in, understood.collect(), others.collect())
    }

    /// The UIDs of the policies that are understood.
    pub(super) fn uids(&self) -> BTreeSet<Uid> {
        let understood = self.stored.values().filter_map(|stored| stored.as_ref().ok());
        understood.map(|stored| stored.policy.uid.clone()).collect()
    }
}

/// Whether nothing that decides is new. A write of the status changes nothing.
fn is_same(known: &Stored, stored: &Stored) -> bool {
    match (known, stored) {
        (Ok(known), Ok(stored)) => known == stored,
        (Err(known), Err(stored)) => {
            known.generation == stored.generation && known.policy == stored.policy
        }
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

fn affected(stored: &Stored) -> Affected {
    let target = match stored {
        Ok(stored) => Some(&stored.target),
        Err(stored) => stored.target.as_ref(),
    };
    target.map_or(Affected::All, |target| Affected::Kinds([target.clone()].into()))
}
