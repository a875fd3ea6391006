//! A spec that is another one although nobody has edited it: the definition of policies leaves something out.

use serde_json::{Value, json};
use trainjob_retention_core::stored::PolicyKind::{self, Cluster};

use crate::scene::{read_one, set, with};

/// A policy that keeps three objects, and a status about what was read of it.
fn observed(kind: PolicyKind) -> Value {
    let three = json!({"keepLast": {"count": 3, "groupBy": ["team"], "maximumAgeSeconds": 60}});
    let mut policy = with(kind, "/rules/0/action", three);
    let digest = read_one(kind, &policy).unwrap().digest.to_string();
    policy["status"] = json!({"observedGeneration": 7, "observedDigest": digest});
    policy
}

/// Why it is not understood; `None`: it is.
fn refusal(policy: &Value) -> Option<String> {
    read_one(Cluster, policy).err().map(|unread| unread.error.to_string())
}

#[test]
fn a_spec_that_nobody_edited_and_that_decides_otherwise_is_not_understood() {
    for (place, value) in [
        ("/rules/0/action/keepLast", json!({"count": 3})),
        ("/rules/0/action", json!({"ttlSecondsAfterFinished": 60})),
        // By itself that would be refused for another reason.
        ("/rules/0/action", json!({})),
        ("/selector", json!({"matchLabels": {"a": "b"}})),
    ] {
        let mut policy = observed(Cluster);
        set(&mut policy["spec"], place, value);
        let error = refusal(&policy).unwrap();
        assert!(error.starts_with("spec: nobody has edited it since generation 7"), "{error}");
        policy["metadata"]["generation"] = json!(8);
        let error = refusal(&policy).unwrap_or_default();
        assert!(!error.starts_with("spec: nobody"), "an edit: {error}");
    }
}

#[test]
fn a_spec_that_decides_the_same_is_understood_whatever_is_written_of_the_rest() {
    for (place, value) in [
        ("/mode", json!("Enforce")),
        ("/breaker", json!({"maxCount": 7})),
        ("/owned", json!("Skip")),
        ("/rules/0/name", json!("most")),
    ] {
        let mut policy = observed(Cluster);
        set(&mut policy["spec"], place, value);
        assert_eq!(refusal(&policy), None, "{place}");
    }
}

#[test]
fn a_status_that_says_nothing_of_this_generation_holds_nothing_back() {
    for status in [
        json!(null),
        json!(7),
        json!({}),
        json!({"observedDigest": "d"}),
        json!({"observedGeneration": 7}),
        json!({"observedGeneration": 7, "observedDigest": 7}),
        json!({"observedGeneration": 6, "observedDigest": "d"}),
        json!({"observedGeneration": "7", "observedDigest": "d"}),
    ] {
        let mut policy = observed(Cluster);
        policy["status"] = status;
        assert_eq!(refusal(&policy), None, "{policy}");
    }
}
