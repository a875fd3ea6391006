//! A stored policy to be varied, and what it is read into.

use std::{num::NonZeroU32, sync::Arc};

use serde_json::{Value, json};
use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    finished::{Definition, Definitions},
    kind::{BuiltIn, GroupKind},
    policy::{
        Annotation, Decide, Delete, Lifetime, Limits, Mode, OwnTtl, Owned, Policy, Propagation,
        Rule, RuleAction, Rules, Scope,
    },
    seconds::Seconds,
    selector::Selector,
    stored::{Digest, NotUnderstood, PolicyKind, StoredPolicy, read},
    uid::Uid,
};

/// A policy that says no more than it must.
pub(crate) fn least(kind: PolicyKind) -> Value {
    let (name, namespace) = match kind {
        PolicyKind::Namespaced => ("RetentionPolicy", json!("a")),
        PolicyKind::Cluster => ("ClusterRetentionPolicy", Value::Null),
    };
    let mut policy = json!({
        "apiVersion": "lifecycle.trainjob.dev/v1alpha1", "kind": name,
        "metadata": {
            "name": "p", "namespace": namespace, "uid": "u", "generation": 7, "resourceVersion": "9",
            "creationTimestamp": "2026-11-22T06:30:00Z",
        },
        "spec": {
            "target": {"apiGroup": "batch", "kind": "Job"},
            "rules": [{"name": "all", "action": {"ttlSecondsAfterFinished": 60}}],
        },
    });
    if kind == PolicyKind::Cluster {
        policy["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    policy
}

/// That policy with a value set or replaced, by the names and indices of its place in the spec.
pub(crate) fn with(kind: PolicyKind, place: &str, value: Value) -> Value {
    let mut policy = least(kind);
    set(&mut policy["spec"], place, value);
    policy
}

/// Sets what a JSON pointer names.
pub(crate) fn set(object: &mut Value, pointer: &str, value: Value) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
        fields => fields[field] = value,
    }
}

pub(crate) fn read_one(
    kind: PolicyKind,
    policy: &Value,
) -> Result<StoredPolicy, Box<NotUnderstood>> {
    read(kind, &policy.to_string(), &mut Definitions::default())
}

pub(crate) fn seconds(seconds: i64) -> Seconds {
    Seconds::new(seconds).unwrap()
}

pub(crate) fn group_kind(group: &str, kind: &str) -> GroupKind {
    GroupKind { group: group.into(), kind: kind.into() }
}

pub(crate) fn decide(lifetime: Lifetime) -> RuleAction {
    RuleAction::Decide(Decide::new(lifetime, None, Delete::Object).unwrap())
}

/// Rules of which there is one.
pub(crate) fn only(action: RuleAction) -> Rules {
    Rules::new(vec![(None, Rule { name: "all".into(), action })]).unwrap()
}

pub(crate) fn scope(kind: PolicyKind, limits: Limits) -> Scope {
    match kind {
        PolicyKind::Namespaced => Scope::Namespace("a".into()),
        PolicyKind::Cluster => Scope::Cluster { namespaces: Selector::default(), limits },
    }
}

/// What [`least`] is read into.
pub(crate) fn least_policy(kind: PolicyKind) -> Policy {
    Policy {
        name: "p".into(),
        uid: Uid::from("u"),
        created: Timestamp(1_795_329_000),
        scope: scope(kind, Limits::default()),
        selector: Selector::default(),
        mode: Mode::Audit,
        priority: 0,
        definition: Arc::new(Definition::BuiltIn(BuiltIn::Job)),
        rules: only(decide(Lifetime::Ttl(seconds(60)))),
        owned: Owned::Skip,
        annotation: Annotation::Ignored,
        own_ttl: OwnTtl::Respected,
        maximum_hold: seconds(2_592_000),
        propagation: Propagation::Foreground,
    }
}

/// A policy for Jobs with what a spec says by default besides.
pub(crate) fn stored(policy: Policy, digest: Digest) -> StoredPolicy {
    StoredPolicy {
        target: group_kind("batch", "Job"),
        policy: Arc::new(policy),
        digest,
        generation: 7,
        deletes_per_second: NonZeroU32::new(20),
        breaker_count: NonZeroU32::new(50).unwrap(),
        acknowledged_trip: None,
    }
}
