//! Answers in the place of the API server.

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::body::Bytes;
use serde_json::json;

use super::call::Call;

/// What a refusal says if nobody gives it the words of the API server.
pub(super) fn words(call: &Call) -> String {
    format!("{} {} \"{}\": refused by the proxy of a test", call.verb, call.resource, call.name)
}

/// Refuses a call with a `Status`, as the API server does.
pub(super) fn refusal(
    call: &Call,
    code: http::StatusCode,
    retry_after: Option<u32>,
    message: &str,
) -> http::Response<Bytes> {
    let mut details = json!({"name": call.name, "group": call.group, "kind": call.resource});
    if let (Some(seconds), Some(details)) = (retry_after, details.as_object_mut()) {
        details.insert("retryAfterSeconds".into(), json!(seconds));
    }
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason(call, code.as_u16()),
        "details": details,
        "code": code.as_u16(),
    });
    let mut response = http::Response::new(Bytes::from(status.to_string()));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, http::HeaderValue::from(seconds));
    }
    response
}

/// Refuses a call as an API server that has too much to do: its answer is no `Status`.
pub(super) fn overloaded(retry_after: u32) -> http::Response<Bytes> {
    let text = "Too many requests, please try again later.\n";
    let mut response = http::Response::new(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(RETRY_AFTER, http::HeaderValue::from(retry_after));
    response
}

/// What the API server calls an error with this code.
fn reason(call: &Call, code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        // That a Secret exists is believed: the operator may not look. A webhook's refusal is a conflict.
        409 if call.verb == "create" && call.resource != "secrets" => "AlreadyExists",
        409 => "Conflict",
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}
