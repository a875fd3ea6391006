//! Each way in which a stored policy is not understood, with what is said about it.

use serde_json::{Value, json};
use trainjob_retention_core::{
    finished::Definitions,
    stored::{
        PolicyKind::{self, Cluster, Namespaced},
        read,
    },
};

use crate::{
    everything::everything,
    scene::{least, read_one, set, with},
};

/// A place in a spec, what is written there (YAML), and how the error begins after `spec`.
type Row = (&'static str, &'static str, &'static str);

/// Where a field is added that this version does not know, and which path is named.
const UNKNOWN_FIELDS: [(&str, &str); 22] = [
    ("", ""),
    ("/target", ".target"),
    ("/selector", ".selector"),
    ("/selector/matchExpressions/0", ".selector.matchExpressions[0]"),
    ("/namespaceSelector", ".namespaceSelector"),
    ("/finished", ".finished"),
    ("/finished/requires/0", ".finished.requires[0]"),
    ("/finished/conditions/0", ".finished.conditions[0]"),
    ("/finished/phase", ".finished.phase"),
    ("/finished/phase/outcomes", ".finished.phase.outcomes"),
    ("/finished/ownTTL/0", ".finished.ownTTL[0]"),
    ("/finished/guards/0", ".finished.guards[0]"),
    ("/finished/guards/0/while/0", ".finished.guards[0].while[0]"),
    ("/rules/0", ".rules[0]"),
    ("/rules/0/match", ".rules[0].match"),
    ("/rules/0/match/labels", ".rules[0].match.labels"),
    ("/rules/0/action", ".rules[0].action"),
    ("/rules/1/action/keepLast", ".rules[1].action.keepLast"),
    ("/overrides", ".overrides"),
    ("/holds", ".holds"),
    ("/limits", ".limits"),
    ("/breaker", ".breaker"),
];

const UNKNOWN_VALUES: [Row; 22] = [
    ("/mode", "Pretend", ".mode: unknown variant `Pretend`, expected `Audit` or `Enforce`"),
    ("/owned", "Sometimes", ".owned: unknown variant"),
    ("/propagation", "Orphan", ".propagation: unknown variant"),
    ("/overrides/ownTTL", "Maybe", ".overrides.ownTTL: unknown variant"),
    ("/priority", "high", ".priority: invalid type"),
    ("/priority", "1.5", ".priority: invalid type"),
    (
        "/selector/matchExpressions/0/operator",
        "Gt",
        ".selector.matchExpressions[0].operator: unknown variant",
    ),
    ("/finished/conditions/0/status", "Unknown", ".finished.conditions[0].status: unknown variant"),
    (
        "/finished/conditions/0/outcome",
        "Cancelled",
        ".finished.conditions[0].outcome: unknown variant",
    ),
    (
        "/finished/requires/0",
        "{path: a, label: b, operator: Exists}",
        ".finished.requires[0]: unknown field",
    ),
    ("/finished/requires/0", "{operator: Exists}", ".finished.requires[0]: "),
    ("/rules/0/match/outcomes/0", "Cancelled", ".rules[0].match.outcomes[0]: unknown variant"),
    ("/rules/0/action", "{keep: true, ttlSecondsAfterFinished: 60}", ".rules[0].action: "),
    ("/rules/0/action", "{keep: false}", ".rules[0].action.keep: the only value is true"),
    (
        "/rules/0/action",
        "{ttlSecondsAfterFinished: -1}",
        ".rules[0].action.ttlSecondsAfterFinished: invalid value",
    ),
    (
        "/rules/0/action",
        "{ttlSecondsAfterFinished: 60.5}",
        ".rules[0].action.ttlSecondsAfterFinished: invalid type",
    ),
    (
        "/rules/0/pods",
        "{ttlSecondsAfterFinished: 1, phases: Running}",
        ".rules[0].pods.phases: unknown variant",
    ),
    ("/rules/0/delete", "Everything", ".rules[0].delete: unknown variant"),
    ("/target", "Job", ".target: invalid type"),
    ("/target", "[example.com, Build]", ".target is a list, expected fields with names"),
    ("/finished/ownTTL/1", "[spec.ttl]", ".finished.ownTTL[1] is a list, expected fields"),
    ("/limits", "[60, 3600, 0]", ".limits is a list, expected fields with names"),
];

const FORBIDDEN_VALUES: [Row; 23] = [
    ("/deletesPerSecond", "1001", ".deletesPerSecond: 1001 is not within 0 and 1000"),
    ("/breaker/maxCount", "0", ".breaker.maxCount: 0 is not within 1 and 2147483647"),
    ("/breaker/maxCount", "2147483648", ".breaker.maxCount: 2147483648 is not within 1"),
    ("/holds/maximumSeconds", "2147483648", ".holds.maximumSeconds: 2147483648 is not within 0"),
    ("/limits/minimumSeconds", "2147483648", ".limits.minimumSeconds: 2147483648 is not within"),
    ("/limits/maximumSeconds", "2147483648", ".limits.maximumSeconds: 2147483648 is not within"),
    ("/limits/maximumHoldSeconds", "2147483648", ".limits.maximumHoldSeconds: 2147483648 is"),
    ("/limits/minimumSeconds", "3601", ".limits: minimumSeconds 3601 is above maximumSeconds 3600"),
    (
        "/rules/2/action/ttlSecondsAfterFinished",
        "2147483648",
        ".rules[2].action.ttlSecondsAfterFinished: 2147483648 is not within 0 and 2147483647",
    ),
    ("/rules/1/action/keepLast/count", "0", ".rules[1].action.keepLast: 0 is not within 1 and"),
    ("/rules/1/action/keepLast/count", "10001", ".rules[1].action.keepLast: 10001 is not within"),
    (
        "/rules/1/action/keepLast/groupBy",
        "[a, b, c, d, e]",
        ".rules[1].action.keepLast: groupBy has more than 4 entries",
    ),
    (
        "/rules/1/action/keepLast/groupBy/0",
        "not a key",
        ".rules[1].action.keepLast: \"not a key\" is no key of a label",
    ),
    (
        "/rules/1/action/keepLast/minimumAgeSeconds",
        "3601",
        ".rules[1].action.keepLast: minimumAgeSeconds 3601 is above",
    ),
    (
        "/rules/1/action/keepLast/minimumAgeSeconds",
        "2147483648",
        ".rules[1].action.keepLast.minimumAgeSeconds: 2147483648 is not within",
    ),
    (
        "/rules/1/action/keepLast/maximumAgeSeconds",
        "2147483648",
        ".rules[1].action.keepLast.maximumAgeSeconds: 2147483648 is not within",
    ),
    ("/rules/0/match/reasons/0", "'*Limit'", ".rules[0].match.reasons: \"*Limit\" is no reason"),
    (
        "/rules/0/match/labels/matchLabels/keep",
        "not a value",
        ".rules[0].match.labels.matchLabels: \"not a value\" is no value of a label",
    ),
    (
        "/selector/matchLabels",
        "{not a key: a}",
        ".selector.matchLabels: \"not a key\" is no key of a label",
    ),
    ("/selector/matchExpressions/1/values", "[a]", ".selector.matchExpressions[1]: label"),
    ("/selector/matchExpressions/0/values", "[]", ".selector.matchExpressions[0]: label"),
    (
        "/namespaceSelector/matchExpressions/0/key",
        "''",
        ".namespaceSelector.matchExpressions[0]: \"\" is no key of a label",
    ),
    (
        "/rules/0/pods",
        "{ttlSecondsAfterFinished: 1}",
        ".rules[0].pods: Pods of this kind cannot be deleted before it",
    ),
];

const FORBIDDEN_DESCRIPTIONS: [Row; 20] = [
    (
        "/finished/conditions/0/outcome",
        "Deactivated",
        ".finished.conditions[0].outcome: Deactivated cannot be defined: say Succeeded, Failed",
    ),
    ("/finished/conditions/1/type", "''", ".finished.conditions[1].type is null or empty"),
    ("/finished/guards/0/name", "''", ".finished.guards[0].name is null or empty"),
    (
        "/finished/phase/outcomes/Failed",
        "[Lost, '']",
        ".finished.phase.outcomes.Failed[1] is null or empty",
    ),
    ("/finished/phase/otherwise", "Deactivated", ".finished.phase.otherwise: Deactivated cannot"),
    ("/finished/ownTTL/0/outcomes/0", "Deactivated", ".finished.ownTTL[0].outcomes: Deactivated"),
    (
        "/finished/conditions/0/reasons/1",
        "''",
        ".finished.conditions[0].reasons: \"\" is no reason",
    ),
    (
        "/finished/requires/0/path",
        "'status.list[0]'",
        ".finished.requires[0].path: \"status.list[0]\" is no path",
    ),
    ("/finished/phase/path", "''", ".finished.phase.path: \"\" is no path"),
    ("/finished/reasonPath", ".status", ".finished.reasonPath: \".status\" is no path"),
    ("/finished/timePath", "status.", ".finished.timePath: \"status.\" is no path"),
    ("/finished/ownTTL/1/path", "a b", ".finished.ownTTL[1].path: \"a b\" is no path"),
    (
        "/finished/phase/outcomes/Failed/0",
        "Done",
        ".finished.phase: phase \"Done\" has two outcomes",
    ),
    (
        "/finished/guards/0/while/0/annotation",
        "'*/a'",
        ".finished.guards[0].while[0].annotation: \"*/a\" is no key",
    ),
    (
        "/finished/guards/0/while/0/annotation",
        "a b*",
        ".finished.guards[0].while[0].annotation: \"a b*\" is no key",
    ),
    (
        "/finished/guards/0/while/2/label",
        "-a",
        ".finished.guards[0].while[2].label: \"-a\" is no key",
    ),
    ("/finished/guards/0/while/0/values", "[a]", ".finished.guards[0].while[0]: Exists takes no"),
    (
        "/finished",
        "{timePath: status.end}",
        ".finished: neither a condition nor a phase tells the end",
    ),
    ("/finished", "{phase: {path: a, otherwise: Other}}", ".finished: any phase is an end"),
    ("/finished", "{phase: {path: a}}", ".finished.phase: no value of the phase tells the end"),
];

/// In a policy of a namespace that says no more than it must.
const CONTRADICTIONS: [Row; 13] = [
    ("/rules/0/match", "{outcomes: [Failed]}", ".rules: the last rule has a match"),
    (
        "/rules",
        "[{name: a, action: {keep: true}}, {name: b, action: {keep: true}}]",
        ".rules[0]: only the last rule has no match",
    ),
    (
        "/rules",
        "[{name: a, match: {reasons: [R]}, action: {keep: true}}, {name: a, action: {keep: true}}]",
        ".rules: two rules are called \"a\"",
    ),
    ("/rules/0/name", "A", ".rules: \"A\" is no name of a rule"),
    (
        "/rules/0/pods",
        "{ttlSecondsAfterFinished: 61}",
        ".rules[0].pods: Pods would go after 61 seconds, their object after 60 already",
    ),
    (
        "/rules/0",
        "{name: a, action: {defer: true}, pods: {ttlSecondsAfterFinished: 1}}",
        ".rules[0]: a rule that defers",
    ),
    (
        "/rules/0",
        "{name: a, action: {defer: true}, delete: Owner}",
        ".rules[0]: a rule that defers",
    ),
    ("/target", "{apiGroup: '', kind: ConfigMap}", ".target.kind: \"ConfigMap\" of the core group"),
    (
        "/target",
        "{apiGroup: ray.io, kind: RayJob}",
        ".finished: only Job of batch, Pod of the core group",
    ),
    ("/target", "{apiGroup: batch}", ".target: missing field `kind`"),
    ("/limits", "{minimumSeconds: 1}", ".limits: unknown field `limits`, expected one of `target`"),
    ("/namespaceSelector", "{}", ".namespaceSelector: unknown field `namespaceSelector`, expected"),
    ("/rules", "{}", ".rules is null or empty"),
];

/// Fields of a spec with everything that could be taken for absent ones, which would mean *all* in most places.
const NOTHING: [(&str, &str); 27] = [
    ("/selector", "null"),
    ("/namespaceSelector", "null"),
    ("/mode", "null"),
    ("/limits", "null"),
    ("/limits", "{}"),
    ("/rules", "[]"),
    ("/rules/0/match", "null"),
    ("/rules/0/match", "{}"),
    ("/rules/0/match/labels", "null"),
    ("/rules/0/match/labels", "{}"),
    ("/rules/0/match/outcomes", "null"),
    ("/rules/0/match/outcomes", "[]"),
    ("/rules/0/match/reasons", "[]"),
    ("/rules/0/action", "{}"),
    ("/rules/1/action/keepLast/groupBy", "[]"),
    ("/rules/1/action/keepLast/maximumAgeSeconds", "null"),
    ("/finished", "null"),
    ("/finished", "{}"),
    ("/finished/timePath", "null"),
    ("/finished/requires", "[]"),
    ("/finished/conditions", "[]"),
    ("/finished/conditions/0/reasons", "[]"),
    ("/finished/phase/outcomes", "{}"),
    ("/finished/phase/outcomes/Failed", "[]"),
    ("/finished/ownTTL", "[]"),
    ("/finished/ownTTL/0/outcomes", "[]"),
    ("/finished/guards/0/while", "[]"),
];

fn error(kind: PolicyKind, policy: &Value) -> String {
    match read_one(kind, policy) {
        Ok(read) => panic!("{policy} is read as {read:?}"),
        Err(unread) => unread.error.to_string(),
    }
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// The policy with all fields, of which one says something else.
fn everything_but(place: &str, value: Value) -> Value {
    let mut policy = everything();
    set(&mut policy["spec"], place, value);
    policy
}

#[test]
fn a_field_that_this_version_does_not_know_is_named_wherever_it_is() {
    for (place, path) in UNKNOWN_FIELDS {
        let policy = everything_but(&format!("{place}/fromTheFuture"), json!(true));
        let error = error(Cluster, &policy);
        assert!(error.starts_with(&format!("spec{path}")), "{path}: {error}");
        // Of an action any two fields are one too many.
        let named = error.contains("unknown field `fromTheFuture`") || place == "/rules/0/action";
        assert!(named, "{path}: {error}");
    }
}

#[test]
fn a_value_that_does_not_fit_is_named_with_what_would() {
    for (place, value, expected) in
        UNKNOWN_VALUES.iter().chain(&FORBIDDEN_VALUES).chain(&FORBIDDEN_DESCRIPTIONS)
    {
        let error = error(Cluster, &everything_but(place, yaml(value)));
        assert!(error.starts_with(&format!("spec{expected}")), "{place} {value}: {error}");
    }
}

#[test]
fn parts_that_contradict_each_other_are_named() {
    for (place, value, expected) in CONTRADICTIONS {
        let error = error(Namespaced, &with(Namespaced, place, yaml(value)));
        assert!(error.starts_with(&format!("spec{expected}")), "{place} {value}: {error}");
    }
    let rule = json!({"name": "a", "match": {"outcomes": ["Failed"]}, "action": {"keep": true}});
    let mut rules = vec![rule; 32];
    rules.push(json!({"name": "last", "action": {"keep": true}}));
    let expected = "spec.rules: there are 33 rules, not 1 to 32";
    assert_eq!(error(Namespaced, &with(Namespaced, "/rules", json!(rules))), expected);
}

#[test]
fn a_field_that_says_nothing_is_not_read_as_if_it_were_absent() {
    for (place, value) in NOTHING {
        let error = error(Cluster, &everything_but(place, yaml(value)));
        let field = place.replace("/0", "[0]").replace("/1", "[1]").replace('/', ".");
        let expected = format!("spec{field} is null or empty: leave it out, or give it a value");
        assert_eq!(error, expected);
    }
}

#[test]
fn what_is_no_policy_at_all_is_not_understood() {
    for text in ["", "7", "null", "[]", "{", r#"{"metadata": 7}"#, r#"{"metadata": {"name": 7}}"#] {
        let unread = read(Cluster, text, &mut Definitions::default()).unwrap_err();
        let error = unread.error.to_string();
        assert!(error.starts_with("not a policy: ") || text == "[]", "{text}: {error}");
    }
    for (kind, field) in
        [(Cluster, "name"), (Cluster, "uid"), (Namespaced, "namespace"), (Namespaced, "uid")]
    {
        let mut policy = least(kind);
        policy["metadata"].as_object_mut().unwrap().remove(field);
        let expected =
            format!("metadata.{field} is null or empty: leave it out, or give it a value");
        assert_eq!(error(kind, &policy), expected);
    }
    for spec in [json!(null), json!(7), json!("x"), json!([])] {
        let mut policy = least(Namespaced);
        policy["spec"] = spec;
        assert!(error(Namespaced, &policy).starts_with("spec"));
    }
}
