//! `AdmissionReview`: what the API server asks, and what it is told.
//!
//! Only what is needed is read; the fields of the objects stay [text](crate::fields) until it is known that
//! they matter.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use json_patch::Patch;
use serde::{Deserialize, Serialize};

use crate::fields::Object;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// A question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// What the answer is told from others by.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// The kind of the object.
    #[serde(borrow)]
    pub kind: Kind<'a>,
    /// What is to be done with it: `CREATE`, `UPDATE`, or what nobody asks here.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    /// The namespace of the object; empty if it has none.
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    /// The object as it is to be.
    #[serde(borrow)]
    pub object: Option<Object<'a>>,
    /// The object as it is.
    #[serde(borrow)]
    pub old_object: Option<Object<'a>>,
    /// How it is to be done.
    #[serde(borrow, default)]
    pub options: Option<Options<'a>>,
}

/// How something is to be done.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options<'a> {
    /// The name under which whoever asks manages fields; empty if none is given.
    #[serde(borrow, default)]
    pub field_manager: Cow<'a, str>,
}

/// The kind of an object.
#[derive(Debug, Deserialize)]
pub struct Kind<'a> {
    /// Its API group.
    #[serde(borrow, default)]
    pub group: Cow<'a, str>,
    /// Its version in that group.
    #[serde(borrow, default)]
    pub version: Cow<'a, str>,
    /// Its name.
    #[serde(borrow, default)]
    pub kind: Cow<'a, str>,
}

/// Reads a question.
///
/// # Errors
///
/// What is wrong with it, for whoever sent it.
pub fn read(body: &[u8]) -> Result<Request<'_>, String> {
    let text = std::str::from_utf8(body).map_err(|error| format!("not UTF-8: {error}"))?;
    let review: Review<'_> = serde_json::from_str(text)
        .map_err(|error| format!("not an {KIND} of {API_VERSION}: {error}"))?;
    if review.api_version != API_VERSION || review.kind != KIND {
        let (kind, version) = (shown(&review.kind), shown(&review.api_version));
        return Err(format!("{kind} of {version}, expected {KIND} of {API_VERSION}"));
    }
    review.request.ok_or_else(|| format!("the {KIND} has no request"))
}

/// A name that somebody sent, to be repeated in an error: not too long, and in one line.
fn shown(name: &str) -> String {
    const LONGEST: usize = 100;
    if name.is_empty() {
        return "no name".to_owned();
    }
    name.chars().take(LONGEST).flat_map(char::escape_debug).collect()
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// Why not; nothing if it is allowed.
    pub refusal: Option<Refusal>,
    /// What its author should know, allowed or not.
    pub warnings: Vec<String>,
    /// What is to be changed of the object.
    pub patch: Patch,
}

/// Why something is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is against the rules.
    Denied(String),
    /// It cannot be read.
    Unreadable(String),
    /// What the verdict depends on cannot be read at this moment.
    Unavailable(String),
}

/// After how many seconds to ask again for a verdict that cannot be had at this moment. Clients made with client-go do.
const TRY_AGAIN: u32 = 1;

impl Answer {
    /// It is allowed, as it is.
    #[must_use]
    pub fn allowed() -> Self {
        Self::default()
    }

    /// It cannot be read.
    #[must_use]
    pub fn unreadable(message: impl Into<String>) -> Self {
        Self { refusal: Some(Refusal::Unreadable(message.into())), ..Self::default() }
    }

    /// What the verdict depends on cannot be read at this moment.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { refusal: Some(Refusal::Unavailable(message.into())), ..Self::default() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
}

#[derive(Serialize)]
struct Status<'a> {
    code: u16,
    reason: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    retry_after_seconds: u32,
}

/// An answer as it is sent; `uid` is the question's.
///
/// # Errors
///
/// Never: an answer is made of text and JSON alone.
pub fn write(uid: &str, answer: &Answer) -> Result<Vec<u8>, serde_json::Error> {
    let details = None;
    let status = answer.refusal.as_ref().map(|refusal| match refusal {
        Refusal::Denied(message) => Status { code: 403, reason: "Forbidden", message, details },
        Refusal::Unreadable(message) => {
            Status { code: 400, reason: "BadRequest", message, details }
        }
        Refusal::Unavailable(message) => {
            let details = Some(Details { retry_after_seconds: TRY_AGAIN });
            Status { code: 503, reason: "ServiceUnavailable", message, details }
        }
    });
    let is_patched = !answer.patch.0.is_empty() && status.is_none();
    let patch = if is_patched { Some(serde_json::to_vec(&answer.patch)?) } else { None };
    let response = Response {
        uid,
        allowed: status.is_none(),
        warnings: &answer.warnings,
        patch_type: is_patched.then_some("JSONPatch"),
        patch: patch.map(|patch| STANDARD.encode(patch)),
        status,
    };
    serde_json::to_vec(&Answered { api_version: API_VERSION, kind: KIND, response })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_question_is_read_as_far_as_it_matters() {
        let body = json!({
            "apiVersion": API_VERSION, "kind": KIND,
            "request": {
                "uid": "U\"1", "operation": "UPDATE", "dryRun": true, "userInfo": {"groups": []},
                "kind": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"},
                "namespace": "team", "object": {"spec": {}}, "oldObject": null,
                "options": {"kind": "UpdateOptions", "fieldManager": "kubectl"},
            },
        });
        let body = body.to_string();
        let request = read(body.as_bytes()).unwrap();
        assert_eq!((&*request.uid, &*request.operation), ("U\"1", "UPDATE"));
        assert_eq!((&*request.kind.kind, &*request.namespace), ("TrainJob", "team"));
        assert!(request.object.unwrap().spec.is_some());
        assert!(request.old_object.is_none());
        assert_eq!(request.options.unwrap().field_manager, "kubectl");
    }

    #[test]
    fn what_is_no_question_is_told_what_one_is() {
        let other = json!({"apiVersion": "v1", "kind": "Pod\n"}).to_string();
        let empty = json!({"apiVersion": API_VERSION, "kind": KIND, "request": null}).to_string();
        for (body, expected) in [
            (&b"\xff"[..], "not UTF-8: "),
            (b"", "not an AdmissionReview of admission.k8s.io/v1: EOF"),
            (b"[]", "not an AdmissionReview of admission.k8s.io/v1: "),
            (b"{}", "no name of no name, expected AdmissionReview of admission.k8s.io/v1"),
            (other.as_bytes(), "Pod\\n of v1, expected AdmissionReview of admission.k8s.io/v1"),
            (empty.as_bytes(), "the AdmissionReview has no request"),
        ] {
            let error = read(body).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    fn written(answer: &Answer) -> Value {
        serde_json::from_slice(&write("U", answer).unwrap()).unwrap()
    }

    #[test]
    fn an_answer_says_what_is_allowed_and_why_not() {
        let denied = Answer {
            refusal: Some(Refusal::Denied("spec.a: Forbidden: no".into())),
            warnings: vec!["soon gone".into()],
            ..Answer::default()
        };
        let status =
            json!({"code": 403, "reason": "Forbidden", "message": "spec.a: Forbidden: no"});
        let head = |response: Value| json!({"apiVersion": API_VERSION, "kind": KIND, "response": response});
        for (answer, expected) in [
            (Answer::allowed(), json!({"uid": "U", "allowed": true})),
            (
                denied,
                json!({"uid": "U", "allowed": false, "warnings": ["soon gone"], "status": status}),
            ),
            (
                Answer::unreadable("no"),
                json!({"uid": "U", "allowed": false,
                    "status": {"code": 400, "reason": "BadRequest", "message": "no"}}),
            ),
            (
                Answer::unavailable("later"),
                json!({"uid": "U", "allowed": false, "status": {
                    "code": 503, "reason": "ServiceUnavailable", "message": "later",
                    "details": {"retryAfterSeconds": 1},
                }}),
            ),
        ] {
            assert_eq!(written(&answer), head(expected));
        }
    }

    #[test]
    fn a_patch_is_sent_only_if_there_is_something_to_change() {
        let operations = json!([{"op": "add", "path": "/spec/a", "value": 1}]);
        let patch = serde_json::from_value(operations.clone()).unwrap();
        let response = &written(&Answer { patch, ..Answer::default() })["response"];
        assert_eq!(response["patchType"], "JSONPatch");
        let patch = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&patch).unwrap(), operations);
        assert!(written(&Answer::allowed())["response"].get("patchType").is_none());
    }
}
