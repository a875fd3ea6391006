//! What is kept because of a policy that is not understood.

use serde_json::{Value, json};
use trainjob_retention_core::{
    finished::Definitions,
    operator::Operator,
    policy::{Limits, Reach, Scope},
    selector::{Requirement, Selector},
    stored::{
        NotUnderstood,
        PolicyKind::{self, Cluster, Namespaced},
        read,
    },
};

use crate::scene::{group_kind, least, read_one, set};

/// A policy for some objects in some namespaces, which is not understood because of one more field.
fn unread(kind: PolicyKind, place: &str, value: &Value) -> Box<NotUnderstood> {
    let mut policy = least(kind);
    policy["spec"]["selector"] = json!({"matchLabels": {"team": "a"}});
    if kind == Cluster {
        policy["spec"]["namespaceSelector"] = json!({"matchLabels": {"tier": "b"}});
    }
    set(&mut policy["spec"], place, value.clone());
    read_one(kind, &policy).unwrap_err()
}

fn selector(key: &str, value: &str) -> Selector {
    [Requirement::new(key, Operator::In, &[value]).unwrap()].into_iter().collect()
}

fn in_namespaces(namespaces: Selector) -> Reach {
    Reach::Scope(Scope::Cluster { namespaces, limits: Limits::default() })
}

#[test]
fn a_policy_that_is_not_understood_keeps_what_it_might_select() {
    let own = || Reach::Scope(Scope::Namespace("a".into()));
    let some = || selector("team", "a");
    let tier = || in_namespaces(selector("tier", "b"));
    let all = Selector::default;
    let everywhere = || Reach::Everywhere;
    let future = json!({"fromTheFuture": true});
    for (kind, place, value, reach, selects) in [
        (Namespaced, "/mode", json!("Pretend"), own(), some()),
        (Namespaced, "/rules/0/fromTheFuture", json!(1), own(), some()),
        (Namespaced, "/selector", future.clone(), own(), all()),
        (Namespaced, "/selector", json!(null), own(), all()),
        (Namespaced, "/selector", json!({"matchLabels": {"a b": "c"}}), own(), all()),
        (Namespaced, "/fromTheFuture", json!(1), own(), all()),
        (Namespaced, "/namespaceSelector", json!({}), own(), some()),
        (Cluster, "/mode", json!("Pretend"), tier(), some()),
        (Cluster, "/limits", future.clone(), tier(), some()),
        (Cluster, "/selector", future.clone(), tier(), all()),
        (Cluster, "/namespaceSelector", future.clone(), everywhere(), some()),
        (Cluster, "/namespaceSelector", json!(null), everywhere(), some()),
        (Cluster, "/fromTheFuture", json!(1), everywhere(), all()),
    ] {
        let unread = unread(kind, place, &value);
        assert_eq!(
            (&unread.policy.reach, &unread.policy.selector),
            (&reach, &selects),
            "{place} {value}"
        );
        assert_eq!(unread.target, Some(group_kind("batch", "Job")), "{place} {value}");
        assert_eq!(unread.generation, 7);
    }
}

#[test]
fn a_policy_with_a_target_that_is_not_understood_concerns_every_kind() {
    let (job, pod) = (group_kind("batch", "Job"), group_kind("", "Pod"));
    for (place, value, concerned) in [
        ("/mode", json!("Pretend"), [true, false]),
        ("/target", json!({"apiGroup": "", "kind": "Pod", "fromTheFuture": 1}), [true, true]),
        ("/target", json!({"apiGroup": "batch"}), [true, true]),
        ("/target", json!({"apiGroup": "", "kind": "ConfigMap"}), [true, true]),
        ("/target", json!(null), [true, true]),
        ("/target", json!(["Job"]), [true, true]),
        ("/target", json!(["", "Pod"]), [true, true]),
    ] {
        let unread = unread(Namespaced, place, &value);
        assert_eq!([unread.concerns(&job), unread.concerns(&pod)], concerned, "{place} {value}");
        assert_eq!(unread.policy.selector, selector("team", "a"));
    }
}

#[test]
fn a_text_that_is_no_policy_keeps_everything() {
    for kind in [Namespaced, Cluster] {
        for text in ["", "{}", r#"{"metadata": 7}"#, r#"{"spec": 7}"#] {
            let NotUnderstood { target, policy, generation, .. } =
                *read(kind, text, &mut Definitions::default()).unwrap_err();
            assert_eq!((target, generation), (None, 0), "{text}");
            assert_eq!((policy.reach, policy.selector), (Reach::Everywhere, Selector::default()));
        }
    }
}
