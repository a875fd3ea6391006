//! A call, as it arrives and before anything is done about it.

use hyper::body::Bytes;
use invariants::{Answer, Request};
use serde::Deserialize;
use serde_json::{Value, json};
use trainjob_api::conditions::FAILED;

use super::path::Target;
use crate::testenv::sent::says;

/// A call of the operator.
///
/// Its parts are named as in RBAC and are empty where it has no such part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Which operator process sent it.
    pub process: u32,
    /// Such as `create`, `patch`, `list` or `watch`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural of the kind; empty for what is no kind, such as `/version`.
    pub resource: String,
    /// Such as `status`.
    pub subresource: String,
    /// The namespace that it names.
    pub namespace: String,
    /// The name of the object; for creations, that in the body.
    pub name: String,
    /// The UID in its preconditions, or in the metadata of a change.
    pub uid: Option<String>,
    /// The resource version in its preconditions, or in the metadata of a change.
    pub version: Option<u64>,
    /// UID of the controller in the body of a creation.
    pub owner: Option<String>,
    /// The `spec.suspend` that it sets.
    pub suspend: Option<bool>,
    /// What was sent.
    pub body: Bytes,
}

/// What a client behind the proxy sees of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    Cluster,
    /// Lists and watches of all namespaces become those of this one, so that many operators can run
    /// side by side in one box. Kinds that have no namespace are seen as they are.
    Namespace(String),
}

/// The parts of a body that calls are told apart by: of objects, merge patches and `DeleteOptions`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content {
    metadata: Metadata,
    spec: Spec,
    preconditions: Preconditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    owner_references: Vec<Owner>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Owner {
    uid: String,
    controller: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    suspend: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl Content {
    /// What is neither an object nor a JSON patch of one says nothing.
    fn of(body: &[u8]) -> Self {
        let Ok(operations) = serde_json::from_slice::<Vec<Value>>(body) else {
            return serde_json::from_slice(body).unwrap_or_default();
        };
        let patch = Value::Array(operations);
        let text = |pointer| says(&patch, pointer).and_then(Value::as_str).map(str::to_owned);
        let metadata = Metadata {
            uid: text("/metadata/uid"),
            resource_version: text("/metadata/resourceVersion"),
            ..Metadata::default()
        };
        let spec = Spec { suspend: says(&patch, "/spec/suspend").and_then(Value::as_bool) };
        Self { metadata, spec, preconditions: Preconditions::default() }
    }
}

impl Call {
    pub(super) fn of(process: u32, head: &http::request::Parts, body: Bytes) -> Self {
        let target = Target::of(head.uri.path());
        let verb = verb(&head.method, &target, head.uri.query().unwrap_or_default());
        let Content { metadata, spec, preconditions } = Content::of(&body);
        let creation = verb == "create";
        let controller = metadata.owner_references.into_iter().find(|owner| owner.controller);
        let version = preconditions.resource_version.or(metadata.resource_version);
        let name_in_body = creation.then_some(metadata.name).flatten().unwrap_or_default();
        Self {
            process,
            verb,
            group: target.group,
            resource: target.resource,
            subresource: target.subresource,
            namespace: target.namespace,
            name: if target.name.is_empty() { name_in_body } else { target.name },
            uid: preconditions.uid.or(metadata.uid),
            version: version.and_then(|version| version.parse().ok()),
            owner: controller.filter(|_| creation).map(|owner| owner.uid),
            suspend: spec.suspend,
            body,
        }
    }

    /// Whether it is a watch.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Whether it is about no kind at all: it asks for the API server's time, whenever that is worth it.
    #[must_use]
    pub fn is_for_time(&self) -> bool {
        self.resource.is_empty()
    }

    /// Whether it asks for a change.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }

    /// Whether it is about an Event, which is best effort and no part of any promise.
    #[must_use]
    pub fn is_event(&self) -> bool {
        self.resource == "events"
    }

    /// Whether it says that a TrainJob has failed, as its deadline has it say.
    #[must_use]
    pub fn marks_failed(&self) -> bool {
        let body = self.json();
        let conditions = body.pointer("/status/conditions").and_then(Value::as_array);
        conditions.is_some_and(|all| all.iter().any(|it| it.get("type") == Some(&json!(FAILED))))
    }

    /// What was sent, as JSON; null where it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// As instruments note it, before anything has come of it.
    pub(super) fn sent(&self, at: invariants::Millis) -> Request {
        Request {
            process: self.process,
            sent: at,
            ended: at,
            verb: self.verb.to_owned(),
            group: self.group.clone(),
            resource: self.resource.clone(),
            subresource: self.subresource.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            version: self.version,
            owner: self.owner.clone(),
            suspend: self.suspend,
            answer: Answer { code: None, served: None, retry_after: None, version: None },
        }
    }
}

fn verb(method: &http::Method, target: &Target, query: &str) -> &'static str {
    let watches = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
    let one = !target.name.is_empty() || target.resource.is_empty();
    match method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if one => "delete",
        "DELETE" => "deletecollection",
        _ if watches => "watch",
        _ if one => "get",
        _ => "list",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str, uri: &str, body: &Value) -> Call {
        let request = http::Request::builder().method(method).uri(uri).body(()).unwrap();
        Call::of(1, &request.into_parts().0, Bytes::from(body.to_string()))
    }

    #[test]
    fn a_call_has_the_verb_that_rbac_gives_it() {
        for (method, uri, verb) in [
            ("GET", "/api/v1/pods?limit=500", "list"),
            ("GET", "/api/v1/pods?limit=500&watch=true&timeoutSeconds=4", "watch"),
            ("GET", "/api/v1/pods?watch=1", "watch"),
            ("GET", "/api/v1/pods?watch=false", "list"),
            ("GET", "/api/v1/namespaces/a/pods/b", "get"),
            ("GET", "/version", "get"),
            ("POST", "/api/v1/namespaces/a/pods", "create"),
            ("PUT", "/api/v1/namespaces/a/pods/b", "update"),
            ("PATCH", "/api/v1/namespaces/a/pods/b/status", "patch"),
            ("DELETE", "/api/v1/namespaces/a/pods/b", "delete"),
            ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection"),
        ] {
            assert_eq!(call(method, uri, &Value::Null).verb, verb, "{method} {uri}");
        }
    }

    #[test]
    fn a_creation_names_its_object_and_its_controller() {
        let owners = json!([{"uid": "other"}, {"uid": "job", "controller": true}]);
        let body = json!({"metadata": {"name": "b", "ownerReferences": owners}, "spec": {"suspend": true}});
        let call = call("POST", "/api/v1/namespaces/a/pods", &body);
        assert_eq!((call.namespace.as_str(), call.name.as_str()), ("a", "b"));
        assert_eq!((call.owner.as_deref(), call.suspend), (Some("job"), Some(true)));
        assert_eq!(call.json(), body);
    }

    #[test]
    fn preconditions_are_found_where_each_verb_has_them() {
        for (method, body) in [
            ("DELETE", json!({"preconditions": {"uid": "u", "resourceVersion": "7"}})),
            ("PATCH", json!({"metadata": {"uid": "u", "resourceVersion": "7"}})),
            ("PUT", json!({"metadata": {"uid": "u", "resourceVersion": "7"}})),
            (
                "PATCH",
                json!([
                    {"op": "replace", "path": "/metadata/uid", "value": "u"},
                    {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
                ]),
            ),
        ] {
            let call = call(method, "/api/v1/namespaces/a/pods/b", &body);
            assert_eq!((call.uid.as_deref(), call.version), (Some("u"), Some(7)), "{method}");
        }
    }

    #[test]
    fn a_failure_is_told_from_other_status() {
        let status =
            |kind: &str| json!({"status": {"conditions": [{"type": "Suspended"}, {"type": kind}]}});
        for (body, failed) in [
            (status("Failed"), true),
            (status("Complete"), false),
            (json!({"status": {"jobsStatus": []}}), false),
        ] {
            let call = call("PATCH", "/apis/g/v1/namespaces/a/trainjobs/b/status", &body);
            assert_eq!(call.marks_failed(), failed, "{body}");
        }
    }

    #[test]
    fn body_that_is_no_object_has_no_fields() {
        for body in [json!(null), json!([{"op": "remove", "path": "/spec"}]), json!("text")] {
            let call = call("PATCH", "/api/v1/namespaces/a/pods/b", &body);
            assert_eq!((call.name.as_str(), call.uid, call.suspend), ("b", None, None));
        }
    }
}
