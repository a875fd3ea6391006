//! What the engine may do, and which policies pause because it may not (`docs/retention.md`, R34 and R51).
//!
//! A policy needs rights about the objects of its target, about Pods if a rule deletes them earlier, and about the owners
//! of its objects. Which kinds the owners have is not known in advance, so a right about them is needed from the first
//! request on that was refused.
//!
//! A right counts as given until the API server says that it is missing: a request without it is refused anyway.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use trainjob_retention_core::{
    policy::RuleAction,
    stored::{Digest, StoredPolicy},
    uid::Uid,
};

use crate::key::TargetId;

/// How often it is asked whether a missing right is given (R51).
const MISSING: Duration = Duration::from_secs(30);
/// How long it is until the next question if there was no answer.
const UNANSWERED: Duration = Duration::from_secs(5);
/// How far apart two questions about a right are at least that refused requests lead to. An admission webhook may refuse
/// many requests in a second.
const DOUBTED: Duration = Duration::from_secs(2);

/// A resource, in any version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: Arc<str>,
    /// The plural name.
    pub name: Arc<str>,
}

/// What the engine does with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// It reads one.
    Get,
    /// It reads all.
    List,
    /// It follows their changes.
    Watch,
    /// It deletes one.
    Delete,
}

impl Verb {
    /// As RBAC writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Delete => "delete",
        }
    }
}

/// The right to do something with the objects of a resource in all namespaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// With which objects.
    pub resource: Resource,
    /// What.
    pub verb: Verb,
}

impl Right {
    /// Those that it takes to delete the Pods of an object, whichever was missing.
    pub(crate) fn to_delete_pods() -> Vec<Self> {
        [Verb::List, Verb::Delete].map(Self::of_pods).into()
    }

    /// To read all Pods, or to delete one.
    pub(super) fn of_pods(verb: Verb) -> Self {
        Self { resource: Resource { group: "".into(), name: "pods".into() }, verb }
    }
}

/// What an answer about a right has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RightChange {
    /// Nothing.
    None,
    /// The right is missing. The policies that need it pause.
    Lost,
    /// The right is given again.
    Given,
}

/// What is known of a right. Times are of a clock that nobody sets.
#[derive(Debug, Default)]
struct Known {
    is_missing: bool,
    asked_at: Option<Duration>,
    /// When to ask; `None`: there is no reason to.
    ask_at: Option<Duration>,
}

/// The rights that a policy needs.
#[derive(Debug)]
struct Needs {
    target: TargetId,
    digest: Digest,
    rights: BTreeSet<Right>,
    /// What was learned from questions about owners. Anybody may give an object an owner of any kind, so the policy goes on without
    /// these, and only such objects wait.
    of_owners: BTreeSet<Right>,
}

impl Needs {
    fn all(&self) -> impl Iterator<Item = &Right> {
        self.rights.union(&self.of_owners)
    }

    fn include(&self, right: &Right) -> bool {
        self.rights.contains(right) || self.of_owners.contains(right)
    }
}

/// What policies need, and what of it is missing.
#[derive(Debug, Default)]
pub(super) struct Rights {
    policies: BTreeMap<Uid, Needs>,
    known: BTreeMap<Right, Known>,
}

impl Rights {
    /// There are no other policies any more.
    pub(super) fn retain(&mut self, policies: &BTreeSet<Uid>) {
        self.policies.retain(|policy, _| policies.contains(policy));
        self.forget_unneeded();
    }

    /// A policy is there. Under a new digest its rights are asked about; what was learned about owners is forgotten then,
    /// because other rules may not need it.
    pub(super) fn need(
        &mut self,
        target: TargetId,
        resource: &Resource,
        stored: &StoredPolicy,
        now: Duration,
    ) {
        let (policy, digest) = (&stored.policy.uid, stored.digest);
        if self.policies.get(policy).is_some_and(|needs| needs.digest == digest) {
            return;
        }
        let rights = of_spec(stored, resource);
        for right in &rights {
            self.known.entry(right.clone()).or_default().ask_at = Some(now);
        }
        let needs = Needs { target, digest, rights, of_owners: BTreeSet::new() };
        self.policies.insert(policy.clone(), needs);
        self.forget_unneeded();
    }

    /// A request for a policy was refused with 403, for want of one of these rights or for another reason.
    pub(super) fn refused(&mut self, policy: &Uid, rights: Vec<Right>, now: Duration) {
        let Some(needs) = self.policies.get_mut(policy) else { return };
        for right in rights {
            needs.rights.insert(right.clone());
            self.known.entry(right).or_default().doubt(now);
        }
    }

    /// A question about an owner was refused with 403 for a policy, for want of one of these rights or for another reason.
    pub(super) fn owner_refused(&mut self, policy: &Uid, rights: &[Right], now: Duration) {
        let Some(needs) = self.policies.get_mut(policy) else { return };
        for right in rights {
            needs.of_owners.insert(right.clone());
            self.known.entry(right.clone()).or_default().doubt(now);
        }
    }

    /// A request was refused with 403 that needs this right, whichever policy it was for.
    pub(super) fn doubt(&mut self, right: &Right, now: Duration) {
        if let Some(known) = self.known.get_mut(right) {
            known.doubt(now);
        }
    }

    /// Whether the API server has said that this right is missing.
    pub(super) fn is_missing(&self, right: &Right) -> bool {
        self.known.get(right).is_some_and(|known| known.is_missing)
    }

    /// The rights that are to be asked about now.
    pub(super) fn to_ask(&self, now: Duration) -> impl Iterator<Item = &Right> {
        let is_due = move |known: &Known| known.ask_at.is_some_and(|at| at <= now);
        self.known.iter().filter(move |(_, known)| is_due(known)).map(|(right, _)| right)
    }

    /// The target kinds of the policies that need a right.
    pub(super) fn targets(&self, right: &Right) -> BTreeSet<TargetId> {
        let needing = self.policies.values().filter(|needs| needs.include(right));
        needing.map(|needs| needs.target).collect()
    }

    /// Takes in whether the engine has a right; `None`: there was no answer.
    pub(super) fn answered(
        &mut self,
        right: &Right,
        answer: Option<bool>,
        now: Duration,
    ) -> RightChange {
        let Some(known) = self.known.get_mut(right) else { return RightChange::None };
        known.asked_at = Some(now);
        known.ask_at = match answer {
            None => Some(now.saturating_add(UNANSWERED)),
            Some(false) => Some(now.saturating_add(MISSING)),
            Some(true) => None,
        };
        let is_missing = answer.map_or(known.is_missing, |is_allowed| !is_allowed);
        match (std::mem::replace(&mut known.is_missing, is_missing), is_missing) {
            (false, true) => RightChange::Lost,
            (true, false) => RightChange::Given,
            (true, true) | (false, false) => RightChange::None,
        }
    }

    /// Whether a policy pauses because a right is missing.
    pub(super) fn is_paused(&self, policy: &Uid) -> bool {
        let needs = self.policies.get(policy);
        needs.is_some_and(|needs| needs.rights.iter().any(|right| self.is_missing(right)))
    }

    /// The rights that a policy lacks, whether it pauses for them or not.
    pub(super) fn missing(&self, policy: &Uid) -> impl Iterator<Item = &Right> {
        let needed = self.policies.get(policy).into_iter().flat_map(Needs::all);
        needed.filter(|right| self.is_missing(right))
    }

    fn forget_unneeded(&mut self) {
        let policies = &self.policies;
        let is_needed = |right: &Right| policies.values().any(|needs| needs.include(right));
        self.known.retain(|right, _| is_needed(right));
    }
}

impl Known {
    /// A request was refused that needs this right. A right that is missing is asked about in its time.
    fn doubt(&mut self, now: Duration) {
        if self.is_missing {
            return;
        }
        let soonest = self.asked_at.map_or(now, |asked| now.max(asked.saturating_add(DOUBTED)));
        self.ask_at = Some(self.ask_at.map_or(soonest, |planned| planned.min(soonest)));
    }
}

/// The rights that follow from a spec alone.
fn of_spec(stored: &StoredPolicy, target: &Resource) -> BTreeSet<Right> {
    let on = |resource: &Resource, verb| Right { resource: resource.clone(), verb };
    let target = [Verb::List, Verb::Watch, Verb::Delete].map(|verb| on(target, verb));
    let mut rights: BTreeSet<_> = target.into_iter().collect();
    let deletes_pods = stored.policy.rules.iter().any(|rule| match &rule.action {
        RuleAction::Decide(decide) => decide.pods().is_some(),
        RuleAction::Defer => false,
    });
    if deletes_pods {
        rights.extend(Right::to_delete_pods());
    }
    rights
}
