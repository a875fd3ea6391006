//! Which Pods are found, with an API server that answers as it is told.

use std::{collections::VecDeque, convert::Infallible, sync::Mutex};

use http::Response;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;
use trainjob_retention_core::{
    outcome::Outcome,
    plan::{Due, PodsBefore, Source},
    pod_label::PodLabel,
    policy::{PodsStage, PolicyReference},
    seconds::Seconds,
    uid::Uid,
};

use super::*;
use crate::{cluster_state::Deletion, key::TargetId};

const NOW: Timestamp = Timestamp(1_795_329_000);
const PODS: &str = "/api/v1/namespaces/a/pods";

/// An API server that gives these answers, and what it was asked for.
fn server(answers: Vec<(u16, Value)>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, answers) = (Arc::clone(&asked), Mutex::new(VecDeque::from(answers)));
    let service = service_fn(move |request: http::Request<Body>| {
        log.lock().unwrap().push(request.uri().to_string());
        let (status, body) = answers.lock().unwrap().pop_front().unwrap();
        let body = Body::from(body.to_string().into_bytes());
        async move { Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap()) }
    });
    (Client::new(service, "default"), asked)
}

/// The deletion of the Pods of object `a/j` with UID `u`.
fn deletion((group, kind): (&str, &str), phases: Phases) -> PodsDeletion {
    let stage = PodsStage::new((group, kind), Seconds::ZERO, phases).unwrap();
    let maximum_hold = Seconds::new(3_600).unwrap();
    let of = Deletion {
        uid: Uid::from("u"),
        resource_version: "7".into(),
        propagation: Propagation::Foreground,
        owner: None,
        policy: PolicyReference { namespace: None, name: "p".into() },
        rule: "all".into(),
        due: Due { at: NOW, source: Source::Policy, delay: None },
        outcome: Outcome::Failed,
    };
    PodsDeletion { of, pods: PodsBefore { stage, unheld: NOW, maximum_hold } }
}

fn pod(name: &str, hold: Option<&str>) -> Value {
    let annotations = json!({"lifecycle.trainjob.dev/hold-until": hold});
    let annotations = if hold.is_some() { annotations } else { json!({}) };
    json!({"metadata": {"name": name, "namespace": "a", "uid": format!("uid of {name}"),
        "resourceVersion": "9", "annotations": annotations}})
}

fn page(pods: &[Value], next: &str) -> (u16, Value) {
    // As the API server answers where there are none.
    let items = if pods.is_empty() { Value::Null } else { json!(pods) };
    (200, json!({"metadata": {"continue": next}, "items": items}))
}

/// The names of the Pods that are due, whether there are more, and whether some are later.
async fn found(
    answers: Vec<(u16, Value)>,
    deletion: &PodsDeletion,
) -> (Vec<String>, (bool, bool), Vec<String>) {
    let (client, asked) = server(answers);
    let object = ObjectKey::new("a", "j");
    let found = find(&client, &object, deletion, NOW).await.unwrap();
    let names = found.due.iter().map(|(name, fence)| {
        assert_eq!((&*fence.uid, &*fence.resource_version), (&*format!("uid of {name}"), "9"));
        name.clone()
    });
    let (names, asked) = (names.collect(), asked.lock().unwrap().clone());
    (names, (found.more, found.later), asked)
}

#[tokio::test]
async fn ended_pods_are_found_page_by_page_and_then_whether_others_run() {
    let job = deletion(("batch", "Job"), Phases::Terminal);
    let held = pod("held", Some("2026-11-22T06:31:00Z"));
    let none = || page(&[], "");
    for (answers, names, state, requests) in [
        (
            vec![page(&[pod("b", None)], "x"), page(&[pod("c", None)], ""), none()],
            vec!["b", "c"],
            (false, false),
            3,
        ),
        (vec![none(), page(&[pod("runs", None)], "")], vec![], (false, true), 2),
        (vec![page(&[pod("b", None), held], "")], vec!["b"], (false, true), 1),
    ] {
        let (found, left, asked) = found(answers, &job).await;
        assert_eq!(
            (found, left, asked.len()),
            (names.iter().map(ToString::to_string).collect(), state, requests)
        );
        let label = "labelSelector=batch.kubernetes.io%2Fcontroller-uid%3Du";
        assert!(asked[0].starts_with(PODS) && asked[0].contains(label), "{asked:?}");
        assert!(asked[0].contains("status.phase%21%3DRunning"), "{asked:?}");
    }
}

#[tokio::test]
async fn twenty_go_at_a_time_and_no_more_are_asked_for() {
    let job = deletion(("batch", "Job"), Phases::All);
    let pods: Vec<_> = (0..21).map(|index| pod(&format!("p{index:02}"), None)).collect();
    let (names, left, asked) = found(vec![page(&pods, "x")], &job).await;
    assert_eq!((names.len(), left, asked.len()), (20, (true, false), 1));
    assert!(!asked[0].contains("fieldSelector"), "{asked:?}");
}

#[tokio::test]
async fn pods_of_a_train_job_are_those_of_its_job_set() {
    let job = deletion(("trainer.kubeflow.org", "TrainJob"), Phases::All);
    let job_set = |controller: &str| {
        let owner = json!({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "name": "j", "uid": controller, "controller": true});
        (
            200,
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": "j", "uid": "s", "ownerReferences": [owner]}}),
        )
    };
    let absent = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"});
    let answers = vec![job_set("u"), page(&[pod("b", None)], "")];
    let (names, _, asked) = found(answers, &job).await;
    assert_eq!(names, ["b"]);
    assert!(asked[1].contains("jobset-uid%3Ds"), "{asked:?}");
    for answer in [job_set("another"), (404, absent)] {
        let (names, left, asked) = found(vec![answer], &job).await;
        assert_eq!((names.len(), left, asked.len()), (0, (false, false), 1));
    }
}

#[tokio::test]
async fn one_list_tells_which_objects_have_pods() {
    let labelled =
        |labels: Value| json!({"metadata": {"name": "p", "namespace": "a", "labels": labels}});
    let pods = vec![
        labelled(
            json!({"jobset.sigs.k8s.io/jobset-uid": "s", "jobset.sigs.k8s.io/jobset-name": "j"}),
        ),
        labelled(json!({"jobset.sigs.k8s.io/jobset-uid": "s"})),
    ];
    let label = PodLabel::of("trainer.kubeflow.org", "TrainJob").unwrap();
    let list = PodsToList { target: TargetId(0), label };
    let (client, asked) = server(vec![page(&pods, "")]);
    let hints = hints(&client, &list).await.unwrap();
    assert_eq!(hints.len(), 1);
    let asked = asked.lock().unwrap().clone();
    assert!(asked[0].starts_with("/api/v1/pods?"), "{asked:?}");
    assert!(asked[0].contains("labelSelector=jobset.sigs.k8s.io%2Fjobset-uid&"), "{asked:?}");
}
