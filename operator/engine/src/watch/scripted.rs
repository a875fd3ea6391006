//! An API server that gives the answers of a script.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use futures::stream::pending;
use http::Response;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower::service_fn;

/// For a status: a success, and a body that neither goes on nor ends.
pub(super) const SILENT: u16 = 0;

/// Status and body of each answer, in the order in which they are given; then there is none any more.
pub(super) type Script = Vec<(u16, String)>;

/// The queries that were asked for.
pub(super) type Asked = Arc<Mutex<Vec<String>>>;

pub(super) fn scripted(answers: Script) -> (Client, Asked) {
    let asked = Asked::default();
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let log = Arc::clone(&asked);
    let service = service_fn(move |request: http::Request<Body>| {
        log.lock().unwrap().push(request.uri().query().unwrap_or_default().to_owned());
        let answer = answers.lock().unwrap().pop_front();
        async move {
            let Some((status, body)) = answer else { return std::future::pending().await };
            let (status, body) = match status {
                SILENT => (200, StreamBody::new(pending::<Result<Frame<Bytes>, _>>()).boxed()),
                _ => (status, Full::from(body.into_bytes()).boxed()),
            };
            Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
        }
    });
    (Client::new(service, "default"), asked)
}

pub(super) fn object(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version}})
}

pub(super) fn page(version: &str, next: &str, names: &[&str], bytes: usize) -> (u16, String) {
    let items: Vec<_> = names.iter().map(|name| object(name, "1")).collect();
    let metadata = json!({"resourceVersion": version, "continue": next});
    let page = json!({"metadata": metadata, "items": items, "more": "x".repeat(bytes)});
    (200, page.to_string())
}

pub(super) fn refused(code: u16) -> (u16, String) {
    let status = json!({"kind": "Status", "status": "Failure", "message": "no", "code": code});
    (code, status.to_string())
}
