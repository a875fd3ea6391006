//! Pods as the API server stores them.

use serde_json::{Value, json};
use trainjob_api::{
    constants::JOBSET_UID_LABEL,
    lifecycle::v1alpha1::{TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL},
};

use super::*;
use crate::testing::{at, template};

fn read(pod: &Value) -> Option<Pod> {
    Pod::read(&serde_json::from_value(pod.clone()).unwrap())
}

/// A Pod whose first container ran out of memory while it was deleted, and whose second nobody saw end.
fn stored() -> Value {
    json!({
        "metadata": {
            "name": "llm-node-0-0-abcde", "namespace": "team", "uid": "p1", "generation": 2,
            "creationTimestamp": "1970-01-01T00:01:40Z",
            "deletionTimestamp": "1970-01-01T00:10:00Z", "deletionGracePeriodSeconds": 30,
            "finalizers": ["batch.kubernetes.io/job-tracking", ACCOUNTING_FINALIZER],
            "labels": {
                TRAIN_JOB_NAME_LABEL: "llm", TRAIN_JOB_UID_LABEL: "j1", JOBSET_UID_LABEL: "s1",
                RESTART_LABEL: "2", REPLICATED_JOB_LABEL: "node",
            },
        },
        "spec": {"nodeName": "n7", "terminationGracePeriodSeconds": 60, "containers": [
            {"name": "node", "resources": {"limits": {"nvidia.com/gpu": "8"}}},
        ]},
        "status": {
            "phase": "Failed", "reason": "Evicted", "message": "no memory", "observedGeneration": 1,
            "startTime": "1970-01-01T00:01:50Z",
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:01:45Z"},
                {"type": "Ready", "status": "False", "lastTransitionTime": "1970-01-01T00:09:00Z"},
                {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
                    "lastTransitionTime": "1970-01-01T00:08:00Z"},
            ],
            "initContainerStatuses": [{"name": "init", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "1970-01-01T00:02:00Z"}}}],
            "containerStatuses": [
                {"name": "node", "image": "", "imageID": "", "ready": false, "restartCount": 3,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "m",
                        "startedAt": "1970-01-01T00:07:00Z", "finishedAt": "1970-01-01T00:08:20Z"}}},
                {"name": "lost", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown",
                        "finishedAt": "1970-01-01T00:08:30Z"}}},
                {"name": "zero", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": null}}},
            ],
        },
    })
}

#[test]
fn a_stored_pod_is_read() {
    let pod = read(&stored()).unwrap();
    let container = |name: &str, restarts, state| Container {
        name: name.into(),
        restarts,
        state,
        last_end: None,
    };
    let out_of_memory = ContainerEnd {
        exit_code: 137,
        reason: "OOMKilled".into(),
        message: "m".into(),
        began: Some(at(420)),
        at: at(500),
    };
    let expected = Pod {
        name: "llm-node-0-0-abcde".into(),
        uid: "p1".into(),
        template: Arc::new(Template { container_names: ["node".into()].into(), ..template() }),
        restart: 2,
        created_at: at(100),
        grace_period: 60,
        deletion: Some(Deletion { at: at(600), grace: 30 }),
        phase: Phase::Failed,
        reason: "Evicted".into(),
        message: "no memory".into(),
        node: Some("n7".into()),
        bound_at: Some(at(105)),
        unready_since: Some(at(540)),
        disruption: Some(Box::new(Disruption {
            reason: "TerminationByKubelet".into(),
            at: Some(at(480)),
        })),
        generations: Some(Generations { current: 2, observed: 1 }),
        containers: Box::new([
            container("init", 0, State::Running(Some(at(120)))),
            Container {
                last_end: Some(Box::new(out_of_memory)),
                ..container("node", 3, State::Waiting)
            },
            container("lost", 0, State::EndedUnseen),
            container("zero", 0, State::EndedUnseen),
        ]),
        finalizer: true,
        accounted: false,
    };
    assert_eq!(pod, expected);
}

#[test]
fn a_pod_is_read_whatever_is_missing_but_the_labels_of_the_mark() {
    let labels = json!({TRAIN_JOB_NAME_LABEL: "llm", TRAIN_JOB_UID_LABEL: "j1"});
    let created = "1970-01-01T00:01:40Z";
    let bare = json!({"metadata": {"name": "p", "uid": "u", "creationTimestamp": created, "labels": labels}});
    let pod = read(&bare).unwrap();
    assert_eq!((pod.phase, pod.restart, pod.node, pod.bound_at), (Phase::Open, 0, None, None));
    let Template { replicated_job, job_set, .. } = &*pod.template;
    assert_eq!(
        (&**replicated_job, &**job_set),
        ("other", "unknown"),
        "a record has no empty names"
    );
    for label in [TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL] {
        let mut unmarked = bare.clone();
        unmarked["metadata"]["labels"].as_object_mut().unwrap().remove(label);
        assert_eq!(read(&unmarked), None, "{label}");
    }
}

#[test]
fn labels_that_no_train_job_can_have_name_none() {
    for (name, uid, expected) in [
        ("llm", "0b2e-4f", true),
        ("a.b-1", "j1", true),
        ("LLM", "j1", false),
        ("a_b", "j1", false),
        ("a..b", "j1", false),
        ("a.-b", "j1", false),
        ("", "j1", false),
        ("llm", "", false),
        ("llm", "a.b", false),
        ("llm", "J1", false),
    ] {
        let mut pod = stored();
        pod["metadata"]["labels"][TRAIN_JOB_NAME_LABEL] = json!(name);
        pod["metadata"]["labels"][TRAIN_JOB_UID_LABEL] = json!(uid);
        assert_eq!(read(&pod).unwrap().template.may_name_job(), expected, "{name:?} {uid:?}");
    }
}

#[test]
fn a_restart_is_no_more_than_a_record_can_hold() {
    for (label, expected) in [("7", 7), ("18446744073709551615", MOST), ("-1", 0), ("x", 0)] {
        let mut pod = stored();
        pod["metadata"]["labels"][RESTART_LABEL] = json!(label);
        assert_eq!(read(&pod).unwrap().restart, expected, "{label}");
    }
}

#[test]
fn at1_the_start_of_the_kubelet_stands_in_for_the_binding() {
    let mut pod = stored();
    pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False"}]);
    assert_eq!(read(&pod).unwrap().bound_at, Some(at(110)));
}

#[test]
fn ag2_only_an_annotation_with_its_own_uid_says_that_a_pod_is_counted() {
    for (uid, expected) in [("p1", true), ("p2", false), ("", false)] {
        let mut pod = stored();
        pod["metadata"]["annotations"] = json!({ACCOUNTED_ANNOTATION: uid});
        assert_eq!(read(&pod).unwrap().accounted, expected, "{uid}");
    }
}

#[test]
fn at2_a_pod_that_was_never_ready_is_not_unready_since_its_containers_ended() {
    let mut pod = stored();
    let ready = |pod: &Value| read(pod).unwrap().unready_since;
    for (initialized, expected) in [
        // As the kubelet writes both before it starts a container, and as it does after its last init container.
        ("1970-01-01T00:09:00Z", None),
        ("1970-01-01T00:09:10Z", None),
        ("1970-01-01T00:08:59Z", Some(at(540))),
    ] {
        let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
        conditions.retain(|it| it["type"] != "Initialized");
        conditions.push(
            json!({"type": "Initialized", "status": "True", "lastTransitionTime": initialized}),
        );
        assert_eq!(ready(&pod), expected, "{initialized}");
    }
}

#[test]
fn of_a_message_no_more_is_kept_than_a_record_may_have() {
    let mut pod = stored();
    let long = "é".repeat(MESSAGE + 1);
    pod["status"]["message"] = json!(long);
    pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["message"] = json!(long);
    let pod = read(&pod).unwrap();
    let end = pod.containers[1].last_real_end().unwrap();
    assert_eq!([&pod.message, &end.message].map(|it| it.chars().count()), [MESSAGE; 2]);
}
