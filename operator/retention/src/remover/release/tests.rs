//! The question about a release, with an API server that answers as it is told.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

const JOB_SETS: &str = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/a/jobsets/j";
const PODS: &str = "/api/v1/namespaces/a/pods";

/// The answer about TrainJob `a/j` with UID `t`; `Err` says whether the question was refused. And the paths that were
/// asked for.
async fn asked(answers: Vec<(u16, Value)>) -> (Result<Release, bool>, Vec<String>) {
    let paths = Arc::new(Mutex::new(Vec::new()));
    let (log, answers) = (Arc::clone(&paths), Mutex::new(VecDeque::from(answers)));
    let service = service_fn(move |request: Request<Body>| {
        log.lock().unwrap().push(request.uri().path().to_owned());
        let (status, body) = answers.lock().unwrap().pop_front().unwrap();
        let body = Body::from(body.to_string().into_bytes());
        let response = Response::builder().status(status).body(body).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    let job = ObjectKey::new("a", "j");
    let answer = ask(&Client::new(service, "default"), &job, &Uid::from("t")).await;
    let paths = paths.lock().unwrap().clone();
    (answer.map_err(|error| requests::is_forbidden(&error)), paths)
}

fn refusal(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason}))
}

/// A JobSet that the TrainJob with this UID controls.
fn job_set(controller: &str) -> (u16, Value) {
    let owner = json!({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "name": "j", "uid": controller, "controller": true});
    let metadata = json!({"name": "j", "namespace": "a", "uid": "s", "ownerReferences": [owner]});
    let kind = "PartialObjectMetadata";
    (200, json!({"apiVersion": "meta.k8s.io/v1", "kind": kind, "metadata": metadata}))
}

/// A page of Pods, of which each has the UID of a JobSet as its label, or none.
fn pods(job_sets: &[Option<&str>], more: bool) -> (u16, Value) {
    let pod = |uid: Option<&str>| {
        let labels = match uid {
            Some(uid) => json!({JOBSET_NAME_LABEL: "j", JOBSET_UID_LABEL: uid}),
            None => json!({JOBSET_NAME_LABEL: "j"}),
        };
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": "p", "labels": labels}})
    };
    let items: Vec<_> = job_sets.iter().copied().map(pod).collect();
    let metadata = if more { json!({"continue": "next"}) } else { json!({}) };
    (
        200,
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
        "metadata": metadata, "items": items}),
    )
}

#[tokio::test]
async fn a_train_job_is_released_when_its_job_set_and_the_pods_of_it_are_gone() {
    let absent = || refusal(404, "NotFound");
    for (answers, expected, paths) in [
        (vec![job_set("t")], Ok(Release::Pending), vec![JOB_SETS]),
        (vec![absent(), pods(&[], false)], Ok(Release::Done), vec![JOB_SETS, PODS]),
        (vec![absent(), pods(&[Some("s")], false)], Ok(Release::Pending), vec![JOB_SETS, PODS]),
        // Somebody made it by hand.
        (vec![absent(), pods(&[None], false)], Ok(Release::Done), vec![JOB_SETS, PODS]),
        // Of a JobSet of another TrainJob, which has the name by now.
        (
            vec![job_set("other"), pods(&[Some("s")], false)],
            Ok(Release::Done),
            vec![JOB_SETS, PODS],
        ),
        (
            vec![job_set("other"), pods(&[Some("before")], false)],
            Ok(Release::Pending),
            vec![JOB_SETS, PODS],
        ),
        (
            vec![absent(), pods(&[None], true), pods(&[Some("s")], false)],
            Ok(Release::Pending),
            vec![JOB_SETS, PODS, PODS],
        ),
    ] {
        assert_eq!(
            asked(answers).await,
            (expected, paths.into_iter().map(str::to_owned).collect())
        );
    }
}

#[tokio::test]
async fn what_shows_nothing_releases_nothing() {
    for (answers, refused) in [
        // An API server that starts does not know the kind yet.
        (vec![refusal(404, "Failed to parse error data")], false),
        (vec![refusal(403, "Forbidden")], true),
        (vec![refusal(404, "NotFound"), refusal(403, "Forbidden")], true),
        (vec![refusal(404, "NotFound"), refusal(500, "InternalError")], false),
    ] {
        assert_eq!(asked(answers).await.0, Err(refused));
    }
}
