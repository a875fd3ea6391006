use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp(1_767_520_800);

fn metadata(fields: &Value) -> ObjectMeta {
    serde_json::from_value(fields.clone()).unwrap()
}

fn owner(api_version: &str, kind: &str, controller: bool) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": "job-node-0", "uid": "B", "controller": controller})
}

#[test]
fn pod_counts_if_a_jobset_of_the_job_made_it_and_in_doubt() {
    let uid = |uid: &str| json!({"jobset.sigs.k8s.io/jobset-uid": uid});
    let job = || json!([owner("batch/v1", "Job", true)]);
    for (what, labels, owners, foreign, expected) in [
        ("as JobSet makes it", uid("J"), job(), None, Maker::JobSet),
        ("beside a foreign JobSet", uid("J"), job(), Some("F"), Maker::JobSet),
        ("its Job was deleted with --cascade=orphan", uid("J"), json!([]), None, Maker::JobSet),
        ("somebody removed its label", json!({}), job(), None, Maker::JobSet),
        ("of the foreign JobSet", uid("F"), job(), Some("F"), Maker::ForeignJobSet),
        ("made by hand", json!({}), json!([]), None, Maker::Somebody),
        ("made by hand, beside a foreign JobSet", json!({}), json!([]), Some("F"), Maker::Somebody),
        ("with an empty label", uid(""), json!([]), None, Maker::Somebody),
        (
            "of a ReplicaSet",
            json!({}),
            json!([owner("apps/v1", "ReplicaSet", true)]),
            None,
            Maker::Somebody,
        ),
        (
            "of a Job of another group",
            json!({}),
            json!([owner("batch.example.com/v1", "Job", true)]),
            None,
            Maker::Somebody,
        ),
        (
            "owned and not controlled",
            json!({}),
            json!([owner("batch/v1", "Job", false)]),
            None,
            Maker::Somebody,
        ),
    ] {
        let pod = metadata(&json!({"labels": labels, "ownerReferences": owners}));
        assert_eq!(Maker::of(&pod, foreign), expected, "{what}");
    }
    assert_eq!(Maker::of(&ObjectMeta::default(), None), Maker::Somebody);
}

fn pod(name: &str, labels: &Value) -> Pod {
    Pod { metadata: metadata(&json!({"name": name, "labels": labels})), ..Pod::default() }
}

#[test]
fn at_most_three_pods_are_named_and_only_those_that_count() {
    let made = || json!({"jobset.sigs.k8s.io/jobset-uid": "J"});
    let pods: Vec<_> = ["a", "b", "c", "d"].map(|name| pod(name, &made())).into_iter().collect();
    let stray = pod("stray", &json!({}));
    let names = |pods: &[Pod], more| {
        let found = RunningPods::among(pods, None, more, NOW)?;
        let names: Vec<_> = found.named.into_iter().map(|pod| pod.name).collect();
        Some((names.concat(), found.more))
    };
    assert_eq!(names(&pods, false), Some(("abc".to_owned(), true)));
    assert_eq!(names(&pods[..3], false), Some(("abc".to_owned(), false)));
    assert_eq!(names(&[stray.clone(), pods[1].clone()], false), Some(("b".to_owned(), false)));
    assert_eq!(names(&pods[..1], true), Some(("a".to_owned(), true)));
    assert_eq!(names(&[stray], true), None);
}

#[test]
fn likely_cause_is_what_somebody_can_look_into() {
    let ends = |at: i64| json!(Timestamp(NOW.0 + at).to_string());
    let running = || json!({"phase": "Running"});
    for (metadata, status, expected) in [
        (json!({}), running(), Cause::NotDeleted),
        (
            json!({"deletionTimestamp": ends(8)}),
            running(),
            Cause::GracePeriod { ends: Timestamp(NOW.0 + 8) },
        ),
        (
            json!({"deletionTimestamp": ends(8), "finalizers": ["a/b"]}),
            running(),
            Cause::GracePeriod { ends: Timestamp(NOW.0 + 8) },
        ),
        (
            json!({"deletionTimestamp": ends(-1), "finalizers": [JOB_TRACKING, "a/b"]}),
            running(),
            Cause::Finalizer("a/b".into()),
        ),
        (
            json!({"deletionTimestamp": ends(0), "finalizers": [JOB_TRACKING]}),
            running(),
            Cause::Overdue { since: NOW },
        ),
        (
            json!({"deletionTimestamp": ends(-1), "finalizers": ["a/b"]}),
            json!({"phase": "Running", "reason": "NodeLost"}),
            Cause::NodeNotReady,
        ),
        (json!({}), json!({"phase": "Unknown"}), Cause::NodeNotReady),
        (
            json!({"deletionTimestamp": ends(-1)}),
            json!({"phase": "Running", "conditions": [{
                "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            }]}),
            Cause::NodeNotReady,
        ),
    ] {
        let what = format!("{metadata} {status}");
        let pod: Pod =
            serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap();
        assert_eq!(RunningPod::of(&pod, NOW).cause, expected, "{what}");
    }
}

#[test]
fn text_names_pod_node_time_and_cause() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "job-node-0-0-x7k2p", "creationTimestamp": "2026-01-04T08:00:00Z"},
        "spec": {"nodeName": "n1", "containers": []},
        "status": {"startTime": "2026-01-04T09:00:00Z", "reason": "NodeLost"},
    }))
    .unwrap();
    let named = vec![RunningPod::of(&pod, NOW)];
    let one =
        "Pod job-node-0-0-x7k2p on node n1 since 2026-01-04T09:00:00Z (its node is not ready)";
    assert_eq!(RunningPods { named: named.clone(), more: false }.to_string(), one);
    let more = RunningPods { named, more: true };
    assert_eq!(more.to_string(), format!("{one}; and more"));

    let bare = Pod { spec: None, status: None, ..pod };
    let text = RunningPod::of(&bare, NOW).to_string();
    assert_eq!(
        text,
        "Pod job-node-0-0-x7k2p since 2026-01-04T08:00:00Z (nobody has deleted it yet)"
    );
}
