//! What becomes of a TrainJob in a namespace that the watch has not shown yet.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test may fail loudly")]

use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use trainjob_core::{
    admission::{lifecycle::FieldUpdates, limits::ClusterLimits},
    lifecycle::deadline::Clock,
};
use trainjob_webhook::{
    handler::{AdmissionHandler, Rules},
    lookup::Lookup,
    review::{self, Answer, Refusal},
    task::Task,
};

const PATH: &str = "/api/v1/namespaces/team";
const TTL: &str = "ttlSecondsAfterFinished";

/// A handler before an API server that answers like this to a request for the namespace, and knows of nothing else.
fn handler(status: u16, answer: &Value) -> AdmissionHandler {
    let answer = answer.to_string();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (status, text) = match request.uri().path() {
            PATH => (status, answer.clone()),
            _ => (404, failure(404, "not found").to_string()),
        };
        let body = Full::new(Bytes::from(text));
        std::future::ready(http::Response::builder().status(status).body(body))
    });
    let lookup = Lookup::new(Arc::default(), Arc::default(), Client::new(service, "default"));
    let limits = ClusterLimits { default_ttl: Some(3600), ..ClusterLimits::default() };
    let (field_updates, deadline_clock) = (FieldUpdates::Mutable, Clock::Creation);
    AdmissionHandler::new(Rules { field_updates, deadline_clock, limits }, lookup)
}

fn failure(code: u16, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message,
        "reason": if code == 404 { "NotFound" } else { "Forbidden" },
    })
}

fn namespace(annotations: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "team", "annotations": annotations},
    })
}

/// What is said to a change of a job from one TTL to another, or to its creation.
async fn asked(
    handler: &AdmissionHandler,
    task: Task,
    old: Option<i64>,
    new: Option<i64>,
) -> Answer {
    let job = |ttl: Option<i64>| {
        json!({
            "metadata": {"name": "job", "namespace": "team"},
            "spec": {"runtimeRef": {"name": "r"}, TTL: ttl, "suspend": false},
        })
    };
    let body = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "namespace": "team",
            "kind": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"},
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "object": job(new), "oldObject": old.map(|old| job(Some(old))),
        },
    });
    let body = body.to_string();
    handler.answer(task, &review::read(body.as_bytes()).unwrap()).await
}

#[tokio::test]
async fn a_namespace_that_the_watch_has_not_shown_is_read() {
    let default = "lifecycle.trainjob.dev/default-ttl-seconds-after-finished";
    for (status, answer, expected) in [
        (200, namespace(&json!({default: "60"})), 60),
        (200, namespace(&json!({})), 3600),
        // Nothing can be created there, which is for others to say.
        (404, failure(404, "namespaces \"team\" not found"), 3600),
    ] {
        let handler = handler(status, &answer);
        let answer = asked(&handler, Task::DefaultTrainJob, None, None).await;
        let patch = serde_json::to_value(&answer.patch).unwrap();
        let pointer = format!("/spec/{TTL}");
        assert_eq!(patch, json!([{"op": "add", "path": pointer, "value": expected}]));
        assert_eq!(answer.warnings.len(), 1, "{:?}", answer.warnings);
    }
}

#[tokio::test]
async fn nothing_is_guessed_of_a_namespace_that_cannot_be_read() {
    let said = "namespaces \"team\" is forbidden";
    let handler = handler(403, &failure(403, said));
    for (task, old, new, is_answered) in [
        (Task::DefaultTrainJob, None, None, false),
        (Task::DefaultTrainJob, None, Some(5), false),
        (Task::ValidateTrainJob, None, Some(5), false),
        (Task::ValidateTrainJob, Some(5), Some(6), false),
        // They do not depend on it.
        (Task::DefaultTrainJob, Some(5), Some(6), true),
        (Task::ValidateTrainJob, Some(5), Some(5), true),
    ] {
        let answer = asked(&handler, task, old, new).await;
        match answer.refusal {
            None => assert!(is_answered, "{task:?}, {old:?} to {new:?}"),
            Some(Refusal::Unavailable(message)) => {
                assert!(!is_answered && message.ends_with(said), "{task:?}: {message}");
            }
            Some(other) => unreachable!("{task:?}, {old:?} to {new:?}: {other:?}"),
        }
    }
}
