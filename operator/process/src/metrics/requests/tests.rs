use std::convert::Infallible;

use http::{Method, StatusCode};
use tower::service_fn;

use super::*;

const KINDS: Kinds =
    &[("trainjobs", "TrainJob"), ("pods", "Pod"), ("clusterthings", "ClusterThing")];

/// The verb and the kind that a request is counted under.
fn counted_under(method: &Method, path: &str) -> (&'static str, &'static str) {
    let (verb, kind) = target::of(KINDS, method, &path.parse().unwrap());
    (verb.name(), kind.name(KINDS))
}

#[test]
fn a_request_is_counted_under_its_verb_and_its_kind() {
    let jobs = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs";
    for (method, path, expected) in [
        (Method::GET, jobs, ("list", "TrainJob")),
        (Method::GET, &format!("{jobs}?limit=5&watch=true"), ("watch", "TrainJob")),
        (Method::GET, &format!("{jobs}?watchful=true"), ("list", "TrainJob")),
        (Method::GET, &format!("{jobs}/a"), ("get", "TrainJob")),
        (Method::POST, jobs, ("create", "TrainJob")),
        (Method::PUT, &format!("{jobs}/a"), ("update", "TrainJob")),
        (Method::PATCH, &format!("{jobs}/a/status"), ("patch", "TrainJob")),
        (Method::DELETE, &format!("{jobs}/a"), ("delete", "TrainJob")),
        (Method::GET, "/api/v1/pods?labelSelector=a", ("list", "Pod")),
        (Method::GET, "/api/v1/namespaces/ns/pods/trainjobs", ("get", "Pod")),
        (Method::GET, "/apis/g/v1/clusterthings/a", ("get", "ClusterThing")),
        (Method::GET, "/apis/g/v1/clusterthings?watch=1", ("watch", "ClusterThing")),
        (Method::POST, "/apis/g/v1/namespaces/ns/secrets", ("create", "other")),
        (Method::GET, "/api/v1/namespaces/ns", ("get", "other")),
        (Method::GET, "/version", ("get", "other")),
        (Method::GET, "/", ("get", "other")),
    ] {
        assert_eq!(counted_under(&method, path), expected, "{method} {path}");
    }
}

fn page(requests: &Requests) -> String {
    let registry = Registry::new();
    requests.register(&registry).unwrap();
    prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
}

/// Asks once, and gets this answer, if one.
async fn ask(requests: &Arc<Requests>, status: Option<StatusCode>) {
    let inner = service_fn(move |_: Request<()>| async move {
        let status = status.ok_or("no connection")?;
        let mut response = Response::new(());
        *response.status_mut() = status;
        Ok::<_, &str>(response)
    });
    let mut client = Counting(Arc::clone(requests)).layer(inner);
    let request = Request::delete("/apis/g/v1/namespaces/ns/trainjobs/a").body(()).unwrap();
    let _ = client.call(request).await;
}

#[tokio::test]
async fn what_came_of_a_request_is_counted_and_an_unusual_answer_adds_no_series() {
    let requests = Requests::new("p", KINDS).unwrap();
    for code in [200, 200, 409, 418, 451] {
        ask(&requests, Some(StatusCode::from_u16(code).unwrap())).await;
    }
    ask(&requests, None).await;
    let page = page(&requests);
    for (code, times) in [("200", 2), ("409", 1), ("other", 2), ("none", 1)] {
        let line = format!(
            r#"p_api_requests_total{{code="{code}",kind="TrainJob",verb="delete"}} {times}"#
        );
        assert!(page.lines().any(|it| it == line), "no {line} in\n{page}");
    }
    let count = r#"p_api_request_duration_seconds_count{kind="TrainJob",verb="delete"} 6"#;
    assert!(page.lines().any(|it| it == count), "{page}");
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_any_more_is_counted_as_one_without_an_answer() {
    let requests = Requests::new("p", KINDS).unwrap();
    let never = service_fn(|_: Request<()>| {
        std::future::pending::<std::result::Result<Response<()>, Infallible>>()
    });
    let mut client = Counting(Arc::clone(&requests)).layer(never);
    drop(client.call(Request::post("/api/v1/pods").body(()).unwrap()));
    let line = r#"p_api_requests_total{code="none",kind="Pod",verb="create"} 1"#;
    assert!(page(&requests).lines().any(|it| it == line));
}
