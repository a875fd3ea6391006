//! All policies for one kind, in the order in which they are asked (`docs/retention.md`, R20).
//!
//! The first policy that selects an object and does not defer governs it. Only policies that enforce decide. One that
//! audits is shown what it would do if it enforced beside them, so it governs for itself what no enforcing policy before
//! it does.
//!
//! The order depends on the policies alone and not on how they were found. What depends on the namespace is worked out
//! once for each namespace, and asking for an object takes no memory.

use std::sync::Arc;

use crate::{
    facts::{Facts, Finish},
    finished::Definition,
    kind::BuiltIn,
    labels::LabelKeys,
    policy::{Decide, Limits, Mode, Namespace, Policy, Rule, RuleAction, Scope, UnreadablePolicy},
    seconds::Seconds,
    selector::Selector,
};

/// All policies for one kind.
#[derive(Debug, Clone)]
pub struct Policies {
    kind: Option<BuiltIn>,
    ordered: Vec<Arc<Policy>>,
    unreadable: Vec<UnreadablePolicy>,
    label_keys: LabelKeys,
    namespace_label_keys: LabelKeys,
}

impl Policies {
    /// The policies for a kind, in any order.
    #[must_use]
    pub fn new(
        kind: Option<BuiltIn>,
        mut policies: Vec<Arc<Policy>>,
        unreadable: Vec<UnreadablePolicy>,
    ) -> Self {
        policies.sort_by(|one, other| one.order().cmp(&other.order()));
        let of_policies = policies.iter().flat_map(|policy| policy.label_keys());
        let of_others = unreadable.iter().flat_map(|policy| policy.selector.keys());
        let label_keys = of_policies.chain(of_others).cloned().collect();
        let scopes = policies.iter().map(|policy| &policy.scope);
        let scopes = scopes.chain(unreadable.iter().filter_map(|policy| policy.reach.scope()));
        let of_namespaces = scopes.filter_map(|scope| match scope {
            Scope::Namespace(_) => None,
            Scope::Cluster { namespaces, .. } => Some(namespaces.keys()),
        });
        let namespace_label_keys = of_namespaces.flatten().cloned().collect();
        Self { kind, ordered: policies, unreadable, label_keys, namespace_label_keys }
    }

    /// Those that can be read, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.ordered.iter().map(|policy| &**policy)
    }

    /// How many there are that can be read.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ordered.len()
    }

    /// Whether there is none that can be read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }

    /// The keys of the labels of objects that they read. Objects that were read for other keys are kept.
    #[must_use]
    pub const fn label_keys(&self) -> &LabelKeys {
        &self.label_keys
    }

    /// The keys of the labels of namespaces that they read. In namespaces that were read for other keys all objects are
    /// kept.
    #[must_use]
    pub const fn namespace_label_keys(&self) -> &LabelKeys {
        &self.namespace_label_keys
    }

    /// What finished means to them, each meaning once.
    #[must_use]
    pub fn definitions(&self) -> Vec<Arc<Definition>> {
        let mut definitions = Vec::new();
        for policy in &self.ordered {
            if !definitions.contains(&policy.definition) {
                definitions.push(Arc::clone(&policy.definition));
            }
        }
        definitions
    }

    /// What each of them says of an object in a namespace, in the order in which they are asked. Which of them counts, the
    /// [policies of the namespace](NamespacePolicies::governing) tell.
    #[must_use]
    pub fn opinions(&self, namespace: &Namespace, object: &Facts) -> Vec<(&Policy, Opinion<'_>)> {
        let asked = self.ordered.iter().map(|policy| {
            let opinion = if policy.scope.includes(namespace) {
                ask(policy, object).into()
            } else {
                Opinion::Elsewhere
            };
            (&**policy, opinion)
        });
        asked.collect()
    }

    /// The policies that apply in a namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &Namespace) -> NamespacePolicies {
        let is_alive = !namespace.terminating;
        let applies = |policy: &&Arc<Policy>| is_alive && policy.scope.includes(namespace);
        let ordered = self.ordered.iter().filter(applies);
        let ordered: Box<[_]> = ordered.cloned().collect();
        let has_limits = |policy: &&Arc<Policy>| policy.limits() != Limits::default();
        let limiting = ordered.iter().filter(|policy| policy.mode == Mode::Enforce);
        let limiting = limiting.filter(has_limits).cloned().collect();
        let might_apply = |policy: &&UnreadablePolicy| is_alive && policy.reach.includes(namespace);
        let unreadable = self.unreadable.iter().filter(might_apply);
        let unreadable = unreadable.map(|policy| policy.selector.clone()).collect();
        NamespacePolicies {
            namespace: Arc::clone(&namespace.name),
            kind: self.kind,
            ordered,
            limiting,
            unreadable,
            label_keys: self.label_keys.clone(),
            in_doubt: !namespace.labels.tell(&self.namespace_label_keys),
        }
    }
}

/// The policies that apply to objects of one kind in one namespace.
#[derive(Debug, Clone)]
pub struct NamespacePolicies {
    namespace: Arc<str>,
    kind: Option<BuiltIn>,
    ordered: Box<[Arc<Policy>]>,
    /// Those of the cluster that enforce bounds.
    limiting: Box<[Arc<Policy>]>,
    /// What policies select that cannot be read.
    unreadable: Box<[Selector]>,
    label_keys: LabelKeys,
    /// Whether it is not known which policies apply.
    in_doubt: bool,
}

/// A finished object and the policy that governs it.
#[derive(Debug, Clone, Copy)]
pub struct Governed<'p, 'o> {
    /// Where it is.
    pub(crate) namespace: &'p Arc<str>,
    /// The kind, if it is known.
    pub(crate) kind: Option<BuiltIn>,
    /// The policy.
    pub policy: &'p Policy,
    /// The rule of it that fits.
    pub rule: &'p Rule,
    /// What the rule says.
    pub(crate) decide: &'p Decide,
    /// The object.
    pub object: &'o Facts,
    /// Its end in the sense of the policy.
    pub finish: &'o Finish,
    /// The bounds that cluster policies set for it.
    pub bounds: Bounds,
    /// Whether a policy might select it that cannot be read, or that reads labels which are not known.
    pub(crate) in_doubt: bool,
}

/// The bounds of all enforcing cluster policies that select an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    minimum: Seconds,
    maximum: Option<Seconds>,
    maximum_hold: Option<Seconds>,
}

impl Bounds {
    /// Adds bounds: of two the narrower counts.
    #[must_use]
    fn and(self, limits: Limits) -> Self {
        let least =
            |one: Option<Seconds>, other: Option<Seconds>| one.into_iter().chain(other).min();
        Self {
            minimum: self.minimum.max(limits.minimum().unwrap_or_default()),
            maximum: least(self.maximum, limits.maximum()),
            maximum_hold: least(self.maximum_hold, limits.maximum_hold()),
        }
    }

    /// The least value; zero if there is no such bound.
    #[must_use]
    pub const fn minimum(&self) -> Seconds {
        self.minimum
    }

    /// The largest value. If the bounds cross, the minimum wins.
    #[must_use]
    pub fn maximum(&self) -> Option<Seconds> {
        self.maximum.map(|maximum| maximum.max(self.minimum))
    }

    /// How far a hold reaches beyond due at most.
    #[must_use]
    pub const fn maximum_hold(&self) -> Option<Seconds> {
        self.maximum_hold
    }

    /// Whether the minimum of one policy is above the maximum of another, which their `Ready` condition says.
    #[must_use]
    pub fn cross(&self) -> bool {
        self.maximum.is_some_and(|maximum| maximum < self.minimum)
    }
}

/// What a policy says of an object, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion<'p> {
    /// It is for other namespaces.
    Elsewhere,
    /// Its selector does not fit.
    NotSelected,
    /// The object has not finished in its sense. If it enforces, the policies after it are not asked.
    Unfinished,
    /// This rule fits, and leaves the object to the next policy.
    Defers(&'p Rule),
    /// This rule fits, and decides.
    Decides(&'p Rule),
}

/// What a policy answers when it is asked about an object.
enum Answer<'p, 'o> {
    /// It does not select the object.
    NotSelected,
    /// It defers, by this rule.
    Defers(&'p Rule),
    /// It selects an object that has not finished in its sense.
    Unfinished,
    /// It governs it.
    Governs(&'p Rule, &'p Decide, &'o Finish),
}

impl<'p> From<Answer<'p, '_>> for Opinion<'p> {
    fn from(answer: Answer<'p, '_>) -> Self {
        match answer {
            Answer::NotSelected => Self::NotSelected,
            Answer::Unfinished => Self::Unfinished,
            Answer::Defers(rule) => Self::Defers(rule),
            Answer::Governs(rule, ..) => Self::Decides(rule),
        }
    }
}

fn ask<'p, 'o>(policy: &'p Policy, object: &'o Facts) -> Answer<'p, 'o> {
    if !policy.selector.matches(&object.labels) {
        return Answer::NotSelected;
    }
    let Some(finish) = object.finish(&policy.definition) else { return Answer::Unfinished };
    let rule = policy.rules.first(finish, &object.labels);
    match &rule.action {
        RuleAction::Defer => Answer::Defers(rule),
        RuleAction::Decide(decide) => Answer::Governs(rule, decide, finish),
    }
}

impl Governed<'_, '_> {
    /// Whether it is not known what all policies say of the object, so that it is kept.
    #[must_use]
    pub const fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// What the rule says.
    #[must_use]
    pub const fn decision(&self) -> &Decide {
        self.decide
    }
}

impl NamespacePolicies {
    /// The object with the enforcing policy that governs it.
    ///
    /// `None` if no policy does, or if it is not to be touched: it has not finished in the sense of the policy that comes
    /// first, or MultiKueue made it.
    #[must_use]
    pub fn governing<'p, 'o>(&'p self, object: &'o Facts) -> Option<Governed<'p, 'o>> {
        if object.remote_copy {
            return None;
        }
        let mut enforcing = self.ordered.iter().filter(|policy| policy.mode == Mode::Enforce);
        enforcing.find_map(|policy| match ask(policy, object) {
            Answer::NotSelected | Answer::Defers(_) => None,
            Answer::Unfinished => Some(None),
            Answer::Governs(rule, decide, finish) => {
                Some(Some(self.governed(policy, (rule, decide), (object, finish))))
            }
        })?
    }

    /// The object with each auditing policy that would govern it if it enforced.
    pub fn audited<'p, 'o>(
        &'p self,
        object: &'o Facts,
    ) -> impl Iterator<Item = Governed<'p, 'o>> + use<'p, 'o> {
        let mut decided = object.remote_copy;
        let audited = self.ordered.iter().map_while(move |policy| {
            if decided {
                return None;
            }
            Some(match (policy.mode, ask(policy, object)) {
                (_, Answer::NotSelected | Answer::Defers(_))
                | (Mode::Audit, Answer::Unfinished) => None,
                (Mode::Enforce, _) => {
                    decided = true;
                    None
                }
                (Mode::Audit, Answer::Governs(rule, decide, finish)) => {
                    Some(self.governed(policy, (rule, decide), (object, finish)))
                }
            })
        });
        audited.flatten()
    }

    fn governed<'p, 'o>(
        &'p self,
        policy: &'p Policy,
        (rule, decide): (&'p Rule, &'p Decide),
        (object, finish): (&'o Facts, &'o Finish),
    ) -> Governed<'p, 'o> {
        let selects = |selector: &Selector| selector.matches(&object.labels);
        let limiting = self.limiting.iter().filter(|limiting| selects(&limiting.selector));
        // An enforcing policy is among those already; that an auditing one is not is what it is shown without.
        let own = (policy.mode == Mode::Audit).then(|| policy.limits());
        let limits = limiting.map(|limiting| limiting.limits()).chain(own);
        Governed {
            namespace: &self.namespace,
            kind: self.kind,
            policy,
            rule,
            decide,
            object,
            finish,
            bounds: limits.fold(Bounds::default(), Bounds::and),
            in_doubt: self.in_doubt
                || !object.labels.tell(&self.label_keys)
                || self.unreadable.iter().any(selects),
        }
    }
}
