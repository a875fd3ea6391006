//! S9, with a list of rights.

use invariants::{Right, Rule, rights, unused_rules};

use crate::story::complete;

fn right(group: &str, resources: &[&str], verbs: &[&str]) -> Right {
    let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    Right { groups: vec![group.into()], resources: texts(resources), verbs: texts(verbs) }
}

fn declared() -> Vec<Right> {
    vec![
        right("trainer.kubeflow.org", &["trainjobs"], &["watch", "delete"]),
        right("trainer.kubeflow.org", &["trainjobs/status"], &["patch"]),
        right("jobset.x-k8s.io", &["jobsets"], &["create"]),
        right("", &["configmaps"], &["create"]),
    ]
}

#[test]
fn what_is_declared_is_allowed_and_used() {
    let story = complete();
    assert_eq!(rights(&story.history, &declared()), []);
    assert_eq!(unused_rules(&story.history.requests, &declared()), [""; 0]);
}

#[test]
fn s9_sees_a_request_outside_the_rules_and_a_rule_without_a_request() {
    let mut fewer = declared();
    fewer.remove(1);
    let found = rights(&complete().history, &fewer);
    assert_eq!(found.iter().map(|it| it.rule).collect::<Vec<_>>(), [Rule::S9]);

    let more = [declared(), vec![right("", &["configmaps", "pods"], &["create", "get"])]].concat();
    let unused = unused_rules(&complete().history.requests, &more);
    assert_eq!(unused, ["get configmaps ", "create pods ", "get pods "]);
}
