//! Each field of a spec by itself.

use std::{num::NonZeroU32, sync::Arc};

use serde_json::{Value, json};
use trainjob_retention_core::{
    finished::Definition,
    kind::BuiltIn,
    operator::Operator,
    outcome::Outcome,
    pattern::ReasonPattern,
    policy::{
        Annotation, Decide, Delete, KeepLast, Lifetime, Limits, Match, Mode, OwnTtl, Owned, Phases,
        PodsStage, Policy, Propagation, Rule, RuleAction, Rules, Scope,
    },
    seconds::Seconds,
    selector::{Requirement, Selector},
    stored::PolicyKind::{self, Cluster, Namespaced},
};

use crate::scene::{
    decide, group_kind, least, least_policy, only, read_one, scope, seconds, stored, with,
};

type Change = Box<dyn Fn(&mut Policy)>;

fn row(
    place: &'static str,
    value: Value,
    change: impl Fn(&mut Policy) + 'static,
) -> (&'static str, Value, Change) {
    (place, value, Box::new(change))
}

fn check(kind: PolicyKind, rows: Vec<(&'static str, Value, Change)>) {
    for (place, value, change) in rows {
        let stored_policy = with(kind, place, value.clone());
        let mut expected = least_policy(kind);
        change(&mut expected);
        let read = read_one(kind, &stored_policy).unwrap();
        assert_eq!(read, stored(expected, read.digest), "{place}: {value}");
    }
}

#[test]
fn a_field_that_is_absent_has_the_default_of_the_documentation() {
    for kind in [Namespaced, Cluster] {
        let read = read_one(kind, &least(kind)).unwrap();
        assert_eq!(read, stored(least_policy(kind), read.digest));
    }
}

#[test]
fn each_field_of_both_kinds_is_read() {
    for kind in [Namespaced, Cluster] {
        check(
            kind,
            vec![
                row("/mode", json!("Enforce"), |policy| policy.mode = Mode::Enforce),
                row("/mode", json!("Audit"), |_| {}),
                row("/priority", json!(-3), |policy| policy.priority = -3),
                row("/owned", json!("AfterOwner"), |policy| policy.owned = Owned::AfterOwner),
                row("/owned", json!("Any"), |policy| policy.owned = Owned::Any),
                row("/owned", json!("Skip"), |_| {}),
                row("/overrides", json!({}), |_| {}),
                row("/overrides", json!({"annotation": true}), |policy| {
                    policy.annotation = Annotation::Allowed;
                }),
                row("/overrides", json!({"ownTTL": "Ignore"}), |policy| {
                    policy.own_ttl = OwnTtl::Ignored;
                }),
                row("/overrides", json!({"annotation": false, "ownTTL": "Respect"}), |_| {}),
                row("/holds", json!({}), |_| {}),
                row("/holds", json!({"maximumSeconds": 0}), |policy| {
                    policy.maximum_hold = Seconds::ZERO;
                }),
                row("/holds", json!({"maximumSeconds": 2_147_483_647}), |policy| {
                    policy.maximum_hold = Seconds::MAX;
                }),
                row("/propagation", json!("Background"), |policy| {
                    policy.propagation = Propagation::Background;
                }),
                row("/propagation", json!("Foreground"), |_| {}),
                row("/breaker", json!({}), |_| {}),
            ],
        );
    }
}

#[test]
fn selectors_are_read() {
    let requirement = |key, operator, values: &[&str]| Requirement::new(key, operator, values);
    let all: Selector = [
        requirement("team", Operator::In, &["a"]),
        requirement("x.dev/tier", Operator::NotIn, &["gold", ""]),
        requirement("b", Operator::Exists, &[]),
        requirement("c", Operator::DoesNotExist, &[]),
        requirement("d", Operator::In, &["1", "2"]),
    ]
    .map(Result::unwrap)
    .into_iter()
    .collect();
    let text = json!({
        "matchLabels": {"team": "a"},
        "matchExpressions": [
            {"key": "x.dev/tier", "operator": "NotIn", "values": ["gold", ""]},
            {"key": "b", "operator": "Exists"},
            {"key": "c", "operator": "DoesNotExist", "values": []},
            {"key": "d", "operator": "In", "values": ["1", "2"]},
        ],
    });
    let selected = all.clone();
    for kind in [Namespaced, Cluster] {
        let selected = selected.clone();
        check(
            kind,
            vec![
                row("/selector", json!({}), |_| {}),
                row("/selector", json!({"matchLabels": {}, "matchExpressions": []}), |_| {}),
                row("/selector", text.clone(), move |policy| policy.selector = selected.clone()),
            ],
        );
    }
    check(
        Cluster,
        vec![
            row("/namespaceSelector", json!({}), |_| {}),
            row("/namespaceSelector", text, move |policy| {
                let namespaces = all.clone();
                policy.scope = Scope::Cluster { namespaces, limits: Limits::default() };
            }),
        ],
    );
}

#[test]
fn limits_are_read() {
    let limit = |minimum: Option<i64>, maximum: Option<i64>, hold: Option<i64>| {
        let [minimum, maximum, hold] = [minimum, maximum, hold].map(|it| it.map(seconds));
        Limits::new(minimum, maximum, hold).unwrap()
    };
    for (text, limits) in [
        (json!({"minimumSeconds": 60}), limit(Some(60), None, None)),
        (json!({"maximumSeconds": 0}), limit(None, Some(0), None)),
        (json!({"maximumHoldSeconds": 9}), limit(None, None, Some(9))),
        (
            json!({"minimumSeconds": 7, "maximumSeconds": 7, "maximumHoldSeconds": 0}),
            limit(Some(7), Some(7), Some(0)),
        ),
    ] {
        let change = move |policy: &mut Policy| policy.scope = scope(Cluster, limits);
        check(Cluster, vec![row("/limits", text, change)]);
    }
}

#[test]
fn what_the_program_needs_besides_is_read() {
    for (place, value, expected) in [
        ("/deletesPerSecond", json!(0), (None, 50)),
        ("/deletesPerSecond", json!(1000), (NonZeroU32::new(1000), 50)),
        ("/breaker", json!({"maxCount": 1}), (NonZeroU32::new(20), 1)),
        ("/breaker", json!({"maxCount": 2_147_483_647}), (NonZeroU32::new(20), 2_147_483_647)),
    ] {
        let policy = read_one(Namespaced, &with(Namespaced, place, value.clone())).unwrap();
        let read = (policy.deletes_per_second, policy.breaker_count.get());
        assert_eq!(read, expected, "{place}: {value}");
    }
    let mut policy = least(Namespaced);
    policy["metadata"]["generation"] = json!(8);
    policy["metadata"]["annotations"] =
        json!({"lifecycle.trainjob.dev/acknowledge-trip": "7-3f9c0a12-1"});
    let read = read_one(Namespaced, &policy).unwrap();
    let acknowledged = Some("7-3f9c0a12-1".into());
    assert_eq!((read.generation, read.acknowledged_trip), (8, acknowledged));
}

#[test]
fn the_actions_of_a_rule_are_read() {
    let keep_last = |count, keys: &[&str], minimum: i64, maximum: Option<i64>| {
        let keys = keys.iter().map(|key| Arc::from(*key)).collect();
        Lifetime::KeepLast(
            KeepLast::new(count, keys, seconds(minimum), maximum.map(seconds)).unwrap(),
        )
    };
    let everything = json!({"keepLast": {
        "count": 3, "groupBy": ["experiment", "x.dev/a"], "minimumAgeSeconds": 60, "maximumAgeSeconds": 90,
    }});
    for (text, expected) in [
        (json!({"ttlSecondsAfterFinished": 0}), decide(Lifetime::Ttl(seconds(0)))),
        (json!({"ttlSecondsAfterFinished": 2_147_483_647}), decide(Lifetime::Ttl(Seconds::MAX))),
        (json!({"keep": true}), decide(Lifetime::Never)),
        (json!({"defer": true}), RuleAction::Defer),
        (json!({"keepLast": {"count": 1}}), decide(keep_last(1, &[], 0, None))),
        (everything, decide(keep_last(3, &["experiment", "x.dev/a"], 60, Some(90)))),
    ] {
        let change = move |policy: &mut Policy| policy.rules = only(expected.clone());
        check(Namespaced, vec![row("/rules/0/action", text, change)]);
    }
}

#[test]
fn the_parts_of_a_rule_are_read() {
    let ttl = || Lifetime::Ttl(seconds(60));
    let pods = |ttl, phases| PodsStage::new(("batch", "Job"), seconds(ttl), phases).unwrap();
    for (place, text, (pods, delete)) in [
        ("/rules/0/delete", json!("Owner"), (None, Delete::Owner)),
        ("/rules/0/delete", json!("Object"), (None, Delete::Object)),
        (
            "/rules/0/pods",
            json!({"ttlSecondsAfterFinished": 0}),
            (Some(pods(0, Phases::Terminal)), Delete::Object),
        ),
        (
            "/rules/0/pods",
            json!({"ttlSecondsAfterFinished": 60, "phases": "All"}),
            (Some(pods(60, Phases::All)), Delete::Object),
        ),
    ] {
        let decided = Decide::new(ttl(), pods, delete).unwrap();
        let change =
            move |policy: &mut Policy| policy.rules = only(RuleAction::Decide(decided.clone()));
        check(Namespaced, vec![row(place, text, change)]);
    }
}

#[test]
fn the_match_of_a_rule_is_read() {
    use Outcome::{Deactivated, Failed, Other, Succeeded};
    let labels: Selector =
        [Requirement::new("keep", Operator::In, &["yes"]).unwrap()].into_iter().collect();
    let matching = |outcomes: Option<&[Outcome]>, reasons: Option<&[&str]>, labels| {
        let reasons = reasons.map(|all| all.iter().map(|it| ReasonPattern::from(*it)).collect());
        Match::new(outcomes.map(<[_]>::to_vec), reasons, labels).unwrap()
    };
    let any = Selector::default;
    for (text, expected) in [
        (
            json!({"outcomes": ["Succeeded", "Failed", "Deactivated", "Other"]}),
            matching(Some(&[Succeeded, Failed, Deactivated, Other]), None, any()),
        ),
        (
            json!({"reasons": ["Evicted", "Back*"]}),
            matching(None, Some(&["Evicted", "Back*"]), any()),
        ),
        (json!({"labels": {"matchLabels": {"keep": "yes"}}}), matching(None, None, labels.clone())),
        (
            json!({"outcomes": ["Failed"], "reasons": ["*"], "labels": {"matchLabels": {"keep": "yes"}}}),
            matching(Some(&[Failed]), Some(&["*"]), labels),
        ),
    ] {
        let rule = |name: &str, action| Rule { name: name.into(), action };
        let change = move |policy: &mut Policy| {
            let first = rule("first", decide(Lifetime::Never));
            let rest = rule("rest", RuleAction::Defer);
            policy.rules = Rules::new(vec![(Some(expected.clone()), first), (None, rest)]).unwrap();
        };
        let rules = json!([
            {"name": "first", "match": text, "action": {"keep": true}},
            {"name": "rest", "action": {"defer": true}},
        ]);
        check(Namespaced, vec![row("/rules", rules, change)]);
    }
}

#[test]
fn the_target_is_read_and_a_known_kind_needs_no_description() {
    for kind in BuiltIn::ALL {
        let target = json!({"apiGroup": kind.group(), "kind": kind.kind()});
        let read = read_one(Namespaced, &with(Namespaced, "/target", target)).unwrap();
        assert_eq!(read.target, group_kind(kind.group(), kind.kind()));
        assert_eq!(*read.policy.definition, Definition::BuiltIn(kind));
    }
}
