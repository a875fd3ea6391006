//! `Retry-After` of an API server that has too much to do.
//!
//! The API server says how long to wait in two ways. A refusal by one of its rules is a `Status` with
//! `details.retryAfterSeconds`. A refusal because it is overloaded or is shutting down is text, and the seconds are in
//! the header `Retry-After`. The client library turns text into a `Status` without the header. This layer puts the
//! seconds of the header into the `Status`, so that nobody else needs to know of the two ways.
//!
//! A header with a date in place of seconds, which no API server sends, has no effect.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::{Body, Bytes};
use serde_json::{Map, Value, json};
use tower::{BoxError, Layer, Service};

/// How much of a refusal is read, in bytes. A longer one loses its text.
const LONGEST: usize = 64 * 1024;

/// Puts the seconds of `Retry-After` into the `Status` of a refusal.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeepRetryAfter;

/// A client whose refusals say how long to wait.
#[derive(Debug, Clone)]
pub(super) struct Told<S>(S);

impl<S> Layer<S> for KeepRetryAfter {
    type Service = Told<S>;

    fn layer(&self, inner: S) -> Told<S> {
        Told(inner)
    }
}

impl<S, A, B> Service<Request<A>> for Told<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Either<B, Full<Bytes>>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            match seconds(answer.status(), answer.headers()) {
                None => Ok(answer.map(Either::Left)),
                Some(seconds) => Ok(told(answer, seconds).await.map(Either::Right)),
            }
        })
    }
}

/// How many seconds an answer says to wait, if it says so and is one that is to be repeated.
fn seconds(status: StatusCode, headers: &HeaderMap) -> Option<u32> {
    if status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

/// The same answer, as a `Status` that says how long to wait.
async fn told<B>(answer: Response<B>, seconds: u32) -> Response<Full<Bytes>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (mut head, body) = answer.into_parts();
    // What cannot be read is only text: the refusal stands without it.
    let body = Limited::new(body, LONGEST).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let status = status(&body, seconds).to_string();
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(head, Full::from(status))
}

/// The `Status` in a body, or one with its text. Seconds that it says itself stay.
fn status(body: &[u8], seconds: u32) -> Value {
    let read: Option<Map<String, Value>> = serde_json::from_slice(body).ok();
    let is_status = |read: &Map<String, Value>| read.get("kind") == Some(&json!("Status"));
    let Some(mut status) = read.filter(is_status) else {
        return json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests",
            "code": StatusCode::TOO_MANY_REQUESTS.as_u16(),
            "message": String::from_utf8_lossy(body).trim(),
            "details": {"retryAfterSeconds": seconds},
        });
    };
    let details = status.entry("details").or_insert(Value::Null);
    if details.is_null() {
        *details = json!({});
    }
    if let Some(details) = details.as_object_mut() {
        details.entry("retryAfterSeconds").or_insert(json!(seconds));
    }
    status.into()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use kube::core::Status;
    use tower::service_fn;

    use super::*;

    /// What a client gets if the API server answers this.
    async fn got(code: u16, retry_after: Option<&'static str>, body: &str) -> String {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let api_server = service_fn(move |_: Request<()>| {
            let mut answer = Response::new(Full::new(body.clone()));
            *answer.status_mut() = StatusCode::from_u16(code).unwrap();
            let value = retry_after.map(HeaderValue::from_static);
            answer.headers_mut().extend(value.map(|value| (RETRY_AFTER, value)));
            async move { Ok::<_, Infallible>(answer) }
        });
        let answer = KeepRetryAfter.layer(api_server).call(Request::new(())).await.unwrap();
        assert_eq!(answer.status(), code);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    fn read(text: &str) -> Status {
        serde_json::from_str(text).unwrap()
    }

    #[tokio::test]
    async fn a_refusal_in_plain_text_becomes_a_status_with_the_seconds_of_the_header() {
        let text = "Too many requests, please try again later.\n";
        let status = read(&got(429, Some("7"), text).await);
        assert_eq!((status.code, &*status.reason), (429, "TooManyRequests"));
        assert_eq!(status.message, text.trim());
        assert_eq!(status.details.unwrap().retry_after_seconds, 7);
    }

    #[tokio::test]
    async fn a_status_keeps_its_own_seconds_and_gets_those_of_the_header_if_it_has_none() {
        for (details, expected) in [
            (json!({"retryAfterSeconds": 3}), 3),
            (json!({"name": "job"}), 7),
            (json!({}), 7),
            (Value::Null, 7),
        ] {
            let body = json!({"kind": "Status", "code": 429, "message": "m", "details": details});
            let status = read(&got(429, Some("7"), &body.to_string()).await);
            assert_eq!((status.code, &*status.message), (429, "m"));
            assert_eq!(status.details.unwrap().retry_after_seconds, expected, "{details}");
        }
    }

    #[tokio::test]
    async fn other_answers_are_left_as_they_are() {
        for (code, retry_after) in [
            (429, None),
            (429, Some("soon")),
            (429, Some("Sun, 06 Nov 1994 08:49:37 GMT")),
            (503, Some("7")),
            (200, Some("7")),
        ] {
            assert_eq!(got(code, retry_after, "text").await, "text", "{code} {retry_after:?}");
        }
    }

    #[tokio::test]
    async fn a_refusal_that_is_too_long_or_no_text_still_says_how_long_to_wait() {
        for body in ["x".repeat(LONGEST + 1), "[1]".to_owned(), r#"{"error": 1}"#.to_owned()] {
            let status = read(&got(429, Some("7"), &body).await);
            assert_eq!(status.code, 429);
            assert_eq!(status.details.unwrap().retry_after_seconds, 7);
        }
    }
}
