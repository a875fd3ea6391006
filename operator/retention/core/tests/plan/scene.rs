//! A failed Job in namespace `a`, and policies to be varied.

use std::sync::Arc;

use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    facts::{Controller, Facts, Finish, Owner},
    finished::Definition,
    interner::Interner,
    keep_last::Groups,
    kind::BuiltIn,
    labels::Labels,
    maybe_timestamp::MaybeTimestamp,
    operator::Operator,
    outcome::{Bond, Ending, Guards, Outcome},
    plan::{Answers, Plan, plan},
    policies::{NamespacePolicies, Policies},
    policy::{
        Annotation, Decide, Delete, Lifetime, Limits, Match, Mode, Namespace, OwnTtl, Owned,
        Policy, Propagation, Rule, RuleAction, Rules, Scope,
    },
    seconds::Seconds,
    selector::{Requirement, Selector},
    uid::Uid,
    version::Version,
    wish::{HoldWish, Wishes},
};

/// When the Job failed.
pub(crate) const START: Timestamp = Timestamp(1_795_329_000);

/// So many seconds later.
pub(crate) const fn at(seconds: i64) -> Timestamp {
    START.plus(seconds)
}

pub(crate) fn seconds(seconds: i64) -> Seconds {
    Seconds::new(seconds).unwrap()
}

pub(crate) fn definition() -> Arc<Definition> {
    Arc::new(Definition::BuiltIn(BuiltIn::Job))
}

pub(crate) fn finish() -> Finish {
    Finish { definition: definition(), time: START.into(), ending: Arc::new(ending()) }
}

fn ending() -> Ending {
    Ending {
        outcome: Outcome::Failed,
        reason: "BackoffLimitExceeded".into(),
        own_ttl: None,
        guards: Guards::default(),
        bond: Bond::None,
    }
}

pub(crate) fn job() -> Facts {
    Facts {
        uid: Uid::from("u"),
        resource_version: Version::from("1"),
        created: at(-100),
        owner: Owner::None,
        wishes: Wishes::default(),
        labels: labels(&[]),
        terminating: MaybeTimestamp::NONE,
        remote_copy: false,
        finishes: [finish()].into(),
    }
}

/// The Job with an end changed in some way.
pub(crate) fn job_with(change: impl FnOnce(&mut Finish)) -> Facts {
    let mut finish = finish();
    change(&mut finish);
    Facts { finishes: [finish].into(), ..job() }
}

pub(crate) fn own_ttl(seconds: i64) -> Facts {
    job_with(|finish| finish.own_ttl = Some(self::seconds(seconds)))
}

/// Labels, read for all keys that occur here.
pub(crate) fn labels(present: &[(&str, &str)]) -> Labels {
    let keys = ["a", "b", "team", "stage", "experiment", "other", "kubernetes.io/metadata.name"];
    let keys = keys.map(Arc::from).into_iter().collect();
    let present = present.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Labels::read(&present.collect(), &keys, &mut Interner::default())
}

/// Selects by the values of labels.
pub(crate) fn selector(labels: &[(&str, &str)]) -> Selector {
    let parse = |(key, value): &(&str, &str)| Requirement::new(key, Operator::In, &[value]);
    labels.iter().map(|label| parse(label).unwrap()).collect()
}

/// Selects what does not have a label.
pub(crate) fn selector_without(label: &str) -> Selector {
    [Requirement::new(label, Operator::DoesNotExist, &[]).unwrap()].into_iter().collect()
}

pub(crate) fn controller() -> Owner {
    Owner::Controller(Box::new(Controller {
        api_version: "jobset.x-k8s.io/v1alpha2".into(),
        kind: "JobSet".into(),
        name: "s".into(),
        uid: Uid::from("o"),
    }))
}

pub(crate) fn owned() -> Facts {
    Facts { owner: controller(), ..job() }
}

pub(crate) fn hold(seconds: i64) -> Wishes {
    Wishes { hold: Some(HoldWish::Until(at(seconds))), ..Wishes::default() }
}

/// A namespaced policy in `a` whose only rule says this.
pub(crate) fn policy(action: RuleAction) -> Policy {
    Policy {
        name: "n".into(),
        uid: Uid::from("policy"),
        created: at(-1000),
        scope: Scope::Namespace("a".into()),
        selector: Selector::default(),
        mode: Mode::Enforce,
        priority: 0,
        definition: definition(),
        rules: rules(Vec::new(), action),
        owned: Owned::Skip,
        annotation: Annotation::Ignored,
        own_ttl: OwnTtl::Respected,
        maximum_hold: seconds(2_592_000),
        propagation: Propagation::Foreground,
    }
}

/// The same for the whole cluster, with limits.
pub(crate) fn cluster_policy(action: RuleAction, limits: Limits) -> Policy {
    let scope = Scope::Cluster { namespaces: Selector::default(), limits };
    Policy { name: "c".into(), uid: Uid::from("cluster policy"), scope, ..policy(action) }
}

/// Rules that are called `r0`, `r1` and so on, before the last one.
pub(crate) fn rules(before: Vec<(Match, RuleAction)>, last: RuleAction) -> Rules {
    let before = before.into_iter().map(|(matches, action)| (Some(matches), action));
    let named = before.chain([(None, last)]).enumerate().map(|(index, (matches, action))| {
        (matches, Rule { name: format!("r{index}").into(), action })
    });
    Rules::new(named.collect()).unwrap()
}

pub(crate) fn decide(lifetime: Lifetime) -> RuleAction {
    RuleAction::Decide(Decide::new(lifetime, None, Delete::Object).unwrap())
}

pub(crate) fn ttl(seconds: i64) -> RuleAction {
    decide(Lifetime::Ttl(self::seconds(seconds)))
}

pub(crate) fn delete_owner(seconds: i64) -> RuleAction {
    let lifetime = Lifetime::Ttl(self::seconds(seconds));
    RuleAction::Decide(Decide::new(lifetime, None, Delete::Owner).unwrap())
}

pub(crate) fn limits(minimum: impl Into<Option<i64>>, maximum: impl Into<Option<i64>>) -> Limits {
    Limits::new(minimum.into().map(seconds), maximum.into().map(seconds), None).unwrap()
}

pub(crate) fn namespace(name: &str) -> Namespace {
    let labels = labels(&[("kubernetes.io/metadata.name", name)]);
    Namespace { name: name.into(), labels, terminating: false, excluded: false }
}

/// The policies as they apply in `a`.
pub(crate) fn there(policies: Vec<Policy>) -> NamespacePolicies {
    there_for(BuiltIn::Job, policies)
}

pub(crate) fn there_for(kind: BuiltIn, policies: Vec<Policy>) -> NamespacePolicies {
    in_namespace("a", kind, policies)
}

/// The policies as they apply in a namespace.
pub(crate) fn in_namespace(name: &str, kind: BuiltIn, policies: Vec<Policy>) -> NamespacePolicies {
    let policies = policies.into_iter().map(Arc::new).collect();
    Policies::new(Some(kind), policies, Vec::new()).in_namespace(&namespace(name))
}

/// A plan without answers and groups.
pub(crate) fn plan_at<'p>(
    object: &Facts,
    policies: &'p NamespacePolicies,
    seconds: i64,
) -> Option<Plan<'p>> {
    plan(object, &Answers::default(), &Groups::default(), policies, at(seconds))
}
