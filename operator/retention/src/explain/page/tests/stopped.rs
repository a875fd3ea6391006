//! Pages about Jobs whose policy deletes nothing at the moment, or may not delete them yet.

use super::*;

#[test]
fn what_stops_the_policy_is_said_as_far_as_its_status_tells() {
    let with = |status: Value| {
        let mut policy = ttl(0);
        merge(&mut policy["status"], &status);
        policy
    };
    let tripped = |count: u64| {
        let trip = json!({"id": "1-d-1", "reason": "MassDelete", "unexpected": count, "stock": 90,
            "at": END});
        json!({"digest": "d", "enforcedThrough": END, "trip": trip})
    };
    let waiting = |namespace: &str, count: u64| {
        json!({"waiting": {"unexpected": count, "until": "2026-11-22T06:32:00Z",
            "namespaces": [{"name": namespace, "unexpected": count}]}})
    };
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": END})
    };
    let suspect = json!({"conditions": [condition("Enforcing", "ClockSuspect", "no time")]});
    let syncing = json!({"conditions": [
        condition("Ready", "Syncing", "not yet"), condition("Enforcing", "NotReady", "see Ready"),
    ]});
    let missing =
        json!([{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "watch"]}]);
    let forbidden = json!({"missingRules": missing, "conditions": [
        condition("Ready", "Forbidden", "see the condition Forbidden"),
        condition("Enforcing", "NotReady", "see Ready"),
    ]});
    for (status, expected) in [
        (json!({}), ", and is deleted now."),
        (
            json!({"observedGeneration": 0}),
            ". But its policy deletes nothing now: the engine has not looked at the last edit of it yet.",
        ),
        (
            json!({"observedGeneration": null}),
            ". But its policy deletes nothing now: the engine has not looked at it yet.",
        ),
        (
            tripped(70),
            ". But its policy deletes nothing now: it has tripped, and 70 of 90 objects wait for an acknowledgement of 1-d-1 (R43).",
        ),
        (
            tripped(1),
            ". But its policy deletes nothing now: it has tripped, and 1 of 90 objects waits for an acknowledgement of 1-d-1 (R43).",
        ),
        (suspect, ". But its policy deletes nothing now: ClockSuspect: no time."),
        (syncing, ". But its policy deletes nothing now: Syncing: not yet."),
        (
            forbidden,
            ". But its policy deletes nothing now: Forbidden: the engine may not list,watch jobs.batch.",
        ),
        (
            waiting("a", 4),
            ". An edit has made 4 objects in its namespace due, which wait until 2026-11-22T06:32:00Z (R42): if this is one of them, it is deleted then, else now.",
        ),
        (
            waiting("a", 1),
            ". An edit has made 1 object in its namespace due, which waits until 2026-11-22T06:32:00Z (R42): if that is this one, it is deleted then, else now.",
        ),
        (waiting("b", 4), ", and is deleted now."),
    ] {
        let said = said(&page(&case_of(BuiltIn::Job, &[with(status)], &plain()), None));
        assert_eq!(said, format!("It is due since {END}{expected}"));
    }
}

#[test]
fn what_is_due_later_is_not_said_to_be_deleted_then_if_the_policy_is_stopped() {
    let mut policy = ttl(3600);
    policy["status"]["observedGeneration"] = json!(0);
    let said = said(&page(&case_of(BuiltIn::Job, &[policy], &plain()), None));
    let expected = "It is due at 2026-11-22T07:30:00Z. But its policy deletes nothing now: the engine has not looked at the last edit of it yet.";
    assert_eq!(said, expected);
}

#[test]
fn a_policy_that_is_not_ready_is_named_with_the_reason_in_either_mode() {
    let mut running = plain();
    running["status"] = json!({});
    for mode in ["Audit", "Enforce"] {
        for (object, opinion) in [(plain(), ": rule all decides"), (running.clone(), "")] {
            let mut policy = ttl(0);
            merge(&mut policy["spec"], &json!({"mode": mode}));
            let ready = json!({"type": "Ready", "status": "False", "reason": "Syncing",
                "message": "not yet", "lastTransitionTime": END});
            policy["status"]["conditions"].as_array_mut().unwrap().push(ready);
            let page = page(&case_of(BuiltIn::Job, &[policy], &object), None);
            let line = format!(
                "RetentionPolicy a/p ({mode}){opinion}; it is not ready: Syncing: not yet\n"
            );
            assert!(page.ends_with(&line), "{page}");
        }
    }
}
