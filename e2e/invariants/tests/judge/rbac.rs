//! S9, with a list of RBAC rules.

use invariants::{RbacRule, Rule, undeclared_requests, unused_rules};

use crate::scenario::complete;

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> RbacRule {
    let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    RbacRule { groups: vec![group.into()], resources: texts(resources), verbs: texts(verbs) }
}

fn declared() -> Vec<RbacRule> {
    vec![
        rule("trainer.kubeflow.org", &["trainjobs"], &["watch", "delete"]),
        rule("trainer.kubeflow.org", &["trainjobs/status"], &["patch"]),
        rule("jobset.x-k8s.io", &["jobsets"], &["create"]),
        rule("", &["configmaps"], &["create"]),
    ]
}

#[test]
fn declared_and_used_rules_give_no_violation() {
    let scenario = complete();
    assert_eq!(undeclared_requests(&scenario.history, &declared()), []);
    assert_eq!(unused_rules(&scenario.history.requests, &declared()), [""; 0]);
}

#[test]
fn s9_sees_a_request_outside_the_rules_and_a_rule_without_a_request() {
    let mut fewer = declared();
    fewer.remove(1);
    let found = undeclared_requests(&complete().history, &fewer);
    assert_eq!(found.iter().map(|it| it.rule).collect::<Vec<_>>(), [Rule::S9]);

    let more = [declared(), vec![rule("", &["configmaps", "pods"], &["create", "get"])]].concat();
    let unused = unused_rules(&complete().history.requests, &more);
    assert_eq!(unused, ["get configmaps ", "create pods ", "get pods "]);
}
