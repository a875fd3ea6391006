//! The digest of what decides in a spec.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use trainjob_api::crd;
use trainjob_retention_core::stored::PolicyKind::{self, Cluster, Namespaced};

use crate::{
    everything::everything,
    scene::{least, read_one, set, with},
};

fn digest(kind: PolicyKind, policy: &Value) -> String {
    let read = read_one(kind, policy);
    read.unwrap_or_else(|unread| panic!("{policy}: {}", unread.error)).digest.to_string()
}

/// A field of the policy with everything, and another value of it (JSON pointer, YAML).
type Change = (&'static str, &'static str);

/// One for each field that decides.
const DECIDING: [Change; 52] = [
    ("/target/apiGroup", "example.org"),
    ("/target/kind", "Run"),
    ("/selector/matchLabels/team", "b"),
    ("/selector/matchExpressions/0/key", "tier"),
    ("/selector/matchExpressions/0/operator", "In"),
    ("/selector/matchExpressions/0/values/0", "silver"),
    ("/selector", "{}"),
    ("/namespaceSelector/matchExpressions/0/values/0", "kube-public"),
    ("/namespaceSelector", "{}"),
    ("/priority", "0"),
    ("/finished/requires/0/path", "status.end"),
    ("/finished/requires/0/operator", "DoesNotExist"),
    ("/finished/conditions/0/type", "Failed"),
    ("/finished/conditions/0/status", "'True'"),
    ("/finished/conditions/0/reasons/1", "'Time*'"),
    ("/finished/conditions/0/outcome", "Other"),
    ("/finished/phase/path", "status.state"),
    ("/finished/phase/outcomes/Succeeded/0", "Completed"),
    ("/finished/phase/outcomes/Failed/0", "Fatal"),
    ("/finished/phase/outcomes/Other/0", "Halted"),
    ("/finished/phase/otherwise", "Failed"),
    ("/finished/reasonPath", "status.why"),
    ("/finished/timePath", "status.when"),
    ("/finished/ownTTL/0/path", "spec.life"),
    ("/finished/ownTTL/0/outcomes/0", "Failed"),
    ("/finished/guards/0/while/0/annotation", "example.org/*"),
    ("/finished/guards/0/while/2/label", "archived"),
    ("/finished/guards/0/while/2/operator", "In"),
    ("/finished/guards/0/while/2/values/0", "'yes'"),
    ("/rules/0/match/outcomes/1", "Succeeded"),
    ("/rules/0/match/reasons/0", "Evicted"),
    ("/rules/0/match/labels/matchLabels/keep", "'no'"),
    ("/rules/0/action", "{defer: true}"),
    ("/rules/0/action", "{ttlSecondsAfterFinished: 0}"),
    ("/rules/0/delete", "Object"),
    ("/rules/1/action/keepLast/count", "4"),
    ("/rules/1/action/keepLast/groupBy/0", "team"),
    ("/rules/1/action/keepLast/minimumAgeSeconds", "0"),
    ("/rules/1/action/keepLast/minimumAgeSeconds", "61"),
    ("/rules/1/action/keepLast/maximumAgeSeconds", "3601"),
    ("/rules/2/action/ttlSecondsAfterFinished", "1"),
    ("/rules/3/action", "{keep: true}"),
    ("/owned", "Skip"),
    ("/owned", "Any"),
    ("/overrides/annotation", "false"),
    ("/overrides/ownTTL", "Respect"),
    ("/holds/maximumSeconds", "1"),
    ("/holds/maximumSeconds", "2592000"),
    ("/limits/minimumSeconds", "61"),
    ("/limits/maximumSeconds", "3601"),
    ("/limits/maximumHoldSeconds", "1"),
    ("/propagation", "Foreground"),
];

const DECIDING_NOTHING: [Change; 7] = [
    ("/mode", "Audit"),
    ("/deletesPerSecond", "20"),
    ("/deletesPerSecond", "1000"),
    ("/breaker/maxCount", "50"),
    ("/breaker", "{}"),
    ("/rules/0/name", "renamed"),
    ("/finished/guards/0/name", "renamed"),
];

fn everything_but((place, value): Change) -> Value {
    let mut policy = everything();
    let value = serde_saphyr::from_str(value).unwrap();
    if place == "/rules/0/action" {
        // A rule that defers does not say what is deleted.
        policy["spec"]["rules"][0]["delete"] = json!("Object");
    }
    set(&mut policy["spec"], place, value);
    policy
}

#[test]
fn the_digest_changes_with_every_field_that_decides() {
    let mut all = BTreeSet::from([digest(Cluster, &everything())]);
    for change in DECIDING {
        assert!(all.insert(digest(Cluster, &everything_but(change))), "{change:?}");
    }
    let mut without = everything();
    for field in ["limits", "namespaceSelector", "selector", "finished"] {
        without["spec"].as_object_mut().unwrap().remove(field);
        without["spec"]["target"] = json!({"apiGroup": "batch", "kind": "Job"});
        assert!(all.insert(digest(Cluster, &without)), "{field}");
    }
}

#[test]
fn the_pods_of_a_rule_decide() {
    let all = [
        with(Namespaced, "/owned", json!("Skip")),
        with(Namespaced, "/rules/0/pods", json!({"ttlSecondsAfterFinished": 0})),
        with(Namespaced, "/rules/0/pods", json!({"ttlSecondsAfterFinished": 1})),
        with(Namespaced, "/rules/0/pods", json!({"ttlSecondsAfterFinished": 1, "phases": "All"})),
    ];
    let digests: BTreeSet<_> = all.iter().map(|policy| digest(Namespaced, policy)).collect();
    assert_eq!(digests.len(), all.len());
}

#[test]
fn the_digest_does_not_change_with_what_decides_nothing() {
    let expected = digest(Cluster, &everything());
    for change in DECIDING_NOTHING {
        assert_eq!(digest(Cluster, &everything_but(change)), expected, "{change:?}");
    }
    let mut policy = everything();
    policy["metadata"]["generation"] = json!(8);
    policy["metadata"]["annotations"] = json!({"a": "b"});
    policy["status"] = json!({"digest": "0"});
    assert_eq!(digest(Cluster, &policy), expected);
}

/// Each field is in a row above: of the policy with everything every leaf is changed by one of them, or lies below a
/// value that one of them replaces.
#[test]
fn no_field_is_forgotten() {
    let mut leaves = Vec::new();
    leaves_of("", &everything()["spec"], &mut leaves);
    let covered: Vec<_> = DECIDING
        .iter()
        .chain(&DECIDING_NOTHING)
        .map(|(place, _)| {
            place
                .split('/')
                .filter(|part| part.parse::<usize>().is_err())
                .collect::<Vec<_>>()
                .join("/")
        })
        .collect();
    for leaf in leaves {
        let is_covered = covered.iter().any(|place| leaf.starts_with(place.as_str()));
        assert!(is_covered, "{leaf}");
    }
}

fn leaves_of(place: &str, value: &Value, leaves: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves_of(place, item, leaves)),
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves_of(&format!("{place}/{name}"), value, leaves);
            }
        }
        _ => leaves.push(place.to_owned()),
    }
}

/// What the API server makes of `value`: every field that is absent and has a default is filled in.
fn with_defaults(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut filled: Map<_, _> = fields.clone();
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(present) = fields.get(name).or_else(|| schema.get("default")) {
                    filled.insert(name.clone(), with_defaults(schema, present));
                }
            }
            Value::Object(filled)
        }
        Value::Array(items) => {
            items.iter().map(|item| with_defaults(&schema["items"], item)).collect()
        }
        plain => plain.clone(),
    }
}

#[test]
fn a_default_is_the_same_written_out_and_left_out() {
    let mut sparse = with(
        Cluster,
        "/rules",
        json!([
            {"name": "a", "match": {"outcomes": ["Failed"]}, "action": {"keepLast": {"count": 1}},
                "pods": {"ttlSecondsAfterFinished": 0}},
            {"name": "b", "action": {"keep": true}},
        ]),
    );
    sparse["spec"]["finished"] = json!({"conditions": [{"type": "Done", "outcome": "Other"}]});
    let [_, cluster] = crd::retention();
    let crd = serde_json::to_value(cluster).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut stored = sparse.clone();
    stored["spec"] = with_defaults(schema, &sparse["spec"]);
    assert_eq!(stored.pointer("/spec/rules/0/action/keepLast/minimumAgeSeconds"), Some(&json!(0)));
    assert_eq!(digest(Cluster, &stored), digest(Cluster, &sparse));
    for (place, empty) in [
        ("/selector", json!({})),
        ("/selector", json!({"matchLabels": {}, "matchExpressions": []})),
        ("/namespaceSelector", json!({})),
        ("/overrides", json!({})),
        ("/holds", json!({})),
    ] {
        let mut written = sparse.clone();
        set(&mut written["spec"], place, empty);
        assert_eq!(digest(Cluster, &written), digest(Cluster, &sparse), "{place}");
    }
}

#[test]
fn the_order_of_fields_does_not_count() {
    let metadata = r#""metadata": {"name": "p", "namespace": "a", "uid": "u"}"#;
    let spec = [
        r#""target": {"apiGroup": "batch", "kind": "Job"}"#,
        r#""selector": {"matchLabels": {"a": "1", "b": "2"}}"#,
        r#""rules": [{"name": "a", "action": {"keep": true}, "pods": {"ttlSecondsAfterFinished": 0, "phases": "All"}}]"#,
    ];
    let reversed = [
        r#""rules": [{"pods": {"phases": "All", "ttlSecondsAfterFinished": 0}, "action": {"keep": true}, "name": "a"}]"#,
        r#""selector": {"matchLabels": {"b": "2", "a": "1"}}"#,
        r#""target": {"kind": "Job", "apiGroup": "batch"}"#,
    ];
    let digest = |spec: [&str; 3]| {
        let text = format!("{{{metadata}, \"spec\": {{{}}}}}", spec.join(", "));
        let definitions = &mut trainjob_retention_core::finished::Definitions::default();
        trainjob_retention_core::stored::read(Namespaced, &text, definitions).unwrap().digest
    };
    assert_eq!(digest(spec), digest(reversed));
}

/// The values are FNV-1a of the specs as sorted JSON without defaults and names, computed elsewhere. Another value in
/// another version would be an edit of every policy, and could ask for an acknowledgement of each.
#[test]
fn an_upgrade_does_not_change_a_digest() {
    assert_eq!(digest(Namespaced, &least(Namespaced)), "720ee7a73b320092");
    assert_eq!(digest(Cluster, &everything()), "4076bcdac8bd9d44");
}
