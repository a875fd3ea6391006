//! A spec in which every field says something else than its default.

use std::{num::NonZeroU32, sync::Arc};

use serde_json::{Value, json};
use trainjob_retention_core::{
    finished::{
        Definition, Definitions,
        configured::{
            Configured, DescribedOutcome, Description, EndCondition, FieldPath, Guard, OwnTtlField,
            Phase, Subject, Test,
        },
    },
    operator::{Condition, Operator},
    pattern::ReasonPattern,
    stored::{PolicyKind::Cluster, read},
};

use crate::scene::{group_kind, least, read_one};

/// All that a policy can say, with nothing left to a default.
pub(crate) fn everything() -> Value {
    let mut policy = least(Cluster);
    policy["spec"] = json!({
        "target": {"apiGroup": "example.com", "kind": "Build"},
        "selector": {
            "matchLabels": {"team": "a"},
            "matchExpressions": [
                {"key": "example.com/tier", "operator": "NotIn", "values": ["gold", ""]},
                {"key": "experiment", "operator": "Exists"},
            ],
        },
        "namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["kube-system"]},
        ]},
        "mode": "Enforce",
        "priority": -3,
        "finished": finished(),
        "rules": [
            {
                "name": "failed", "delete": "Owner", "action": {"keep": true},
                "match": {
                    "outcomes": ["Failed", "Other"], "reasons": ["Evicted*"],
                    "labels": {"matchLabels": {"keep": "yes"}},
                },
            },
            {
                "name": "grouped", "match": {"outcomes": ["Deactivated"]},
                "action": {"keepLast": {
                    "count": 3, "groupBy": ["experiment"], "minimumAgeSeconds": 60, "maximumAgeSeconds": 3600,
                }},
            },
            {"name": "short", "match": {"outcomes": ["Succeeded"]}, "action": {"ttlSecondsAfterFinished": 0}},
            {"name": "rest", "action": {"defer": true}},
        ],
        "owned": "AfterOwner",
        "overrides": {"annotation": true, "ownTTL": "Ignore"},
        "holds": {"maximumSeconds": 0},
        "limits": {"minimumSeconds": 60, "maximumSeconds": 3600, "maximumHoldSeconds": 0},
        "propagation": "Background",
        "deletesPerSecond": 0,
        "breaker": {"maxCount": 1},
    });
    policy
}

fn finished() -> Value {
    json!({
        "requires": [{"path": "status.completionTime", "operator": "Exists"}],
        "conditions": [
            {"type": "Succeeded", "status": "False", "reasons": ["Broken", "Timeout*"], "outcome": "Failed"},
            {"type": "Done", "outcome": "Succeeded"},
        ],
        "phase": {
            "path": "status.phase", "otherwise": "Other",
            "outcomes": {"Succeeded": ["Done"], "Failed": ["Error"], "Other": ["Stopped"]},
        },
        "reasonPath": "status.reason",
        "timePath": "status.endTime",
        "ownTTL": [{"path": "spec.ttl", "outcomes": ["Succeeded"]}, {"path": "spec.otherTtl"}],
        "guards": [{"name": "archive", "while": [
            {"annotation": "example.com/*", "operator": "Exists"},
            {"annotation": "example.com/stored", "operator": "DoesNotExist"},
            {"label": "example.com/archived", "operator": "NotIn", "values": ["true"]},
        ]}],
    })
}

fn path(path: &str) -> FieldPath {
    FieldPath::parse(path).unwrap()
}

fn test(subject: Subject, operator: Operator, values: &[&str]) -> Test {
    Test { subject, condition: Condition::new(operator, values.iter().copied()).unwrap() }
}

fn condition(
    type_: &str,
    status: bool,
    reasons: &[&str],
    outcome: DescribedOutcome,
) -> EndCondition {
    let reasons = reasons.iter().map(|reason| ReasonPattern::from(*reason)).collect();
    EndCondition { type_: type_.to_owned(), status, reasons, outcome }
}

#[test]
fn a_description_of_what_finished_means_is_read() {
    use DescribedOutcome::{Failed, Other, Succeeded};
    use Operator::{DoesNotExist, Exists, NotIn};
    let phases = [("Done", Succeeded), ("Error", Failed), ("Stopped", Other)];
    let phases = phases.map(|(value, outcome)| (value.to_owned(), outcome));
    let guard = vec![
        test(Subject::Annotations("example.com/".into()), Exists, &[]),
        test(Subject::Annotation("example.com/stored".into()), DoesNotExist, &[]),
        test(Subject::Label("example.com/archived".into()), NotIn, &["true"]),
    ];
    let description = Description {
        requires: vec![test(Subject::Field(path("status.completionTime")), Exists, &[])],
        conditions: vec![
            condition("Succeeded", false, &["Broken", "Timeout*"], Failed),
            condition("Done", true, &[], Succeeded),
        ],
        phase: Some(Phase::new(path("status.phase"), phases, Some(Other)).unwrap()),
        reason: Some(path("status.reason")),
        time: Some(path("status.endTime")),
        own_ttl: vec![
            OwnTtlField { path: path("spec.ttl"), outcomes: vec![Succeeded] },
            OwnTtlField { path: path("spec.otherTtl"), outcomes: Vec::new() },
        ],
        guards: vec![Guard::new(guard).unwrap()],
    };
    let expected = Definition::Configured(Box::new(Configured::new(description).unwrap()));
    let read = read_one(Cluster, &everything()).unwrap();
    assert_eq!(*read.policy.definition, expected);
    let names: Vec<_> = read.policy.rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["failed", "grouped", "short", "rest"]);
    assert_eq!(read.target, group_kind("example.com", "Build"));
    assert_eq!((read.deletes_per_second, read.breaker_count), (None, NonZeroU32::MIN));
}

#[test]
fn policies_that_mean_the_same_by_finished_share_it() {
    let mut definitions = Definitions::default();
    let (mut other, mut another) = (everything(), everything());
    other["spec"]["mode"] = json!("Audit");
    another["spec"]["finished"]["timePath"] = json!("status.end");
    let mut definition = |policy: &Value| {
        let read = read(Cluster, &policy.to_string(), &mut definitions).unwrap();
        Arc::clone(&read.policy.definition)
    };
    let [first, same, different] = [&everything(), &other, &another].map(&mut definition);
    assert!(Arc::ptr_eq(&first, &same) && !Arc::ptr_eq(&first, &different));
}
