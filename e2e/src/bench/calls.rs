//! What was asked of the API server, as it noted that itself, to the microsecond.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::Deserialize;
use serde_json::Value;
use trainjob_api::time::Timestamp;

use crate::testenv::accounting::USER as ACCOUNTING_USER;
use crate::testenv::fixtures::OPERATOR_USER;
use crate::testenv::retention::USER as RETENTION_USER;

/// The user that the raw client is.
pub(super) const RAW_USER: &str = "system:serviceaccount:raw-client:trainjob-operator";
/// The user that the raw client of the retention engine is.
const RAW_RETENTION_USER: &str = "system:serviceaccount:raw-client:trainjob-retention";
/// The user that the raw client of the accounting program is.
const RAW_ACCOUNTING_USER: &str = "system:serviceaccount:raw-client:trainjob-accounting";
/// The user that the TTL controller of Kubernetes is.
pub(super) const PEER_USER: &str =
    "system:serviceaccount:kube-system:ttl-after-finished-controller";

/// The user that Kubeflow Trainer is.
pub(super) const TRAINER_USER: &str =
    "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager";

/// An instant, in microseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Micros(pub(super) i64);

impl Micros {
    /// The beginning of a second.
    #[must_use]
    pub(super) const fn of(at: Timestamp) -> Self {
        Self(at.0.saturating_mul(1_000_000))
    }

    /// This instant.
    #[must_use]
    pub(super) fn now() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self(i64::try_from(now.unwrap_or_default().as_micros()).unwrap_or(i64::MAX))
    }

    /// Milliseconds from `earlier` to this instant; negative if that is later.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run are far fewer than 2^52")]
    pub(super) const fn since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 / 1e3
    }

    /// How long it is until then.
    #[must_use]
    pub(super) fn away(self) -> Duration {
        Duration::from_micros(u64::try_from(self.0 - Self::now().0).unwrap_or(0))
    }
}

/// One request and its answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call {
    /// What was asked for: `create`, `delete`, `list`, …
    pub(super) verb: String,
    /// The object it was about.
    #[serde(default, rename = "objectRef")]
    pub(super) object: ObjectRef,
    /// Path and query of the request.
    #[serde(default, rename = "requestURI")]
    pub(super) path: String,
    /// What was sent; only from the namespace whose requests are noted verbatim.
    #[serde(default, rename = "requestObject")]
    pub(super) sent: Value,
    /// What was answered; likewise.
    #[serde(default, rename = "responseObject")]
    pub(super) answered: Value,
    #[serde(rename = "requestReceivedTimestamp")]
    received: MicroTime,
    #[serde(rename = "stageTimestamp")]
    completed: MicroTime,
    #[serde(default)]
    response_status: ResponseStatus,
    user: User,
}

/// The object of a request; empty where it has no such part.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ObjectRef {
    /// The group of its kind.
    pub(super) api_group: String,
    /// The plural of its kind.
    pub(super) resource: String,
    /// Its namespace.
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
    /// Such as `status`.
    pub(super) subresource: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

#[derive(Debug, Clone, Deserialize)]
struct User {
    username: String,
    #[serde(default)]
    extra: Extra,
}

/// What else is known of a user: of a `ServiceAccount`, which of its tokens it had.
#[derive(Debug, Clone, Default, Deserialize)]
struct Extra {
    #[serde(default, rename = "authentication.kubernetes.io/credential-id")]
    credentials: Vec<String>,
}

impl Call {
    /// When the API server received it.
    #[must_use]
    pub(super) fn received(&self) -> Micros {
        Micros(self.received.0.as_microsecond())
    }

    /// When the API server had answered it.
    #[must_use]
    pub(super) fn completed(&self) -> Micros {
        Micros(self.completed.0.as_microsecond())
    }

    /// Whether it was sent with the token of this id. Two replicas are one user, but each has a token of its own.
    #[must_use]
    pub(super) fn has_token(&self, id: &str) -> bool {
        let ids = self.user.extra.credentials.iter();
        ids.filter_map(|id| id.strip_prefix("JTI=")).any(|it| it == id)
    }

    /// Whether the API server did what was asked for.
    #[must_use]
    pub(super) fn was_accepted(&self) -> bool {
        (200..300).contains(&self.response_status.code)
    }

    /// Whether it is the verb on the resource, which may be `resource/subresource`.
    #[must_use]
    pub(super) fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && self.resource() == resource
    }

    /// The resource with its subresource.
    #[must_use]
    pub(super) fn resource(&self) -> String {
        let ObjectRef { resource, subresource, .. } = &self.object;
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") }
    }

    /// Whether it tells users something.
    #[must_use]
    pub(super) fn is_event(&self) -> bool {
        self.object.resource == "events"
    }

    /// Whether it keeps a client informed, whatever becomes of jobs: lists of everything, watches, and the API server's
    /// time.
    #[must_use]
    pub(super) fn is_watching(&self) -> bool {
        self.verb == "watch"
            || (self.verb == "list" && self.object.namespace.is_empty())
            || self.path == "/version"
    }
}

/// What one user asked for.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// About jobs: neither to watch nor to tell.
    pub(super) work: Vec<Call>,
    /// To tell users of them.
    pub(super) events: Vec<Call>,
    /// To be informed.
    pub(super) watching: Vec<Call>,
}

impl Calls {
    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Call> {
        self.work.iter().chain(&self.events).chain(&self.watching)
    }

    /// The work that was accepted of a verb on a resource, in the order of completion.
    #[must_use]
    pub(super) fn accepted(&self, verb: &str, resource: &str) -> Vec<&Call> {
        let wanted = |call: &&Call| call.is(verb, resource) && call.was_accepted();
        let mut calls: Vec<&Call> = self.work.iter().filter(wanted).collect();
        calls.sort_by_key(|call| call.completed());
        calls
    }
}

/// How many calls there are of each kind.
pub(super) fn counted<'c>(calls: impl Iterator<Item = &'c Call>) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for call in calls {
        *kinds.entry(format!("{} {}", call.verb, call.resource())).or_default() += 1;
    }
    kinds
}

/// What the operator, the raw client and the peers asked for, from the API server's log.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// The calls of the operator, of the retention engine, or of the accounting program.
    pub(super) operator: Calls,
    /// The raw client's calls.
    pub(super) raw: Calls,
    /// The TTL controller's calls.
    pub(super) peer: Calls,
    /// Kubeflow Trainer's calls.
    pub(super) trainer: Calls,
}

impl Noted {
    /// Reads a log.
    pub(super) fn read(log: &[u8]) -> Result<Self> {
        let mut noted = Self::default();
        for line in log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let call: Call = serde_json::from_slice(line).context("the audit log is broken")?;
            let calls = match call.user.username.as_str() {
                OPERATOR_USER | RETENTION_USER | ACCOUNTING_USER => &mut noted.operator,
                RAW_USER | RAW_RETENTION_USER | RAW_ACCOUNTING_USER => &mut noted.raw,
                PEER_USER => &mut noted.peer,
                TRAINER_USER => &mut noted.trainer,
                _ => continue,
            };
            if call.is_event() {
                calls.events.push(call);
            } else if call.is_watching() {
                calls.watching.push(call);
            } else {
                calls.work.push(call);
            }
        }
        Ok(noted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(user: &str, verb: &str, object: &str, code: u16) -> String {
        format!(
            r#"{{"verb":"{verb}","user":{{"username":"{user}"}},"objectRef":{object},
            "responseStatus":{{"code":{code}}},
            "requestReceivedTimestamp":"2026-01-04T10:00:00.000250Z",
            "stageTimestamp":"2026-01-04T10:00:00.003000Z"}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn work_events_and_watching_are_told_apart_by_user() {
        let job = r#"{"resource":"trainjobs","namespace":"a","name":"b"}"#;
        let status = r#"{"resource":"trainjobs","namespace":"a","subresource":"status"}"#;
        let log = [
            line(OPERATOR_USER, "delete", job, 200),
            line(OPERATOR_USER, "delete", job, 409),
            line(OPERATOR_USER, "patch", status, 200),
            line(OPERATOR_USER, "create", r#"{"resource":"events","namespace":"a"}"#, 201),
            line(OPERATOR_USER, "list", r#"{"resource":"trainjobs"}"#, 200),
            line(OPERATOR_USER, "get", r#"{}, "requestURI": "/version""#, 200),
            line(RAW_USER, "delete", job, 200),
            line("somebody", "delete", job, 200),
        ]
        .join("\n");
        let noted = Noted::read(log.as_bytes()).unwrap();
        let Calls { work, events, watching } = &noted.operator;
        assert_eq!((work.len(), events.len(), watching.len()), (3, 1, 2));
        assert_eq!((noted.operator.all().count(), noted.raw.work.len()), (6, 1));
        let deleted = noted.operator.accepted("delete", "trainjobs");
        assert_eq!(deleted.len(), 1);
        assert!((deleted[0].completed().since(deleted[0].received()) - 2.75).abs() < 1e-9);
        assert_eq!(noted.operator.accepted("patch", "trainjobs/status").len(), 1);
    }

    #[test]
    fn replicas_are_told_apart_by_their_tokens() {
        let call = line(OPERATOR_USER, "get", "{}", 200);
        let id =
            r#""username":"x","extra":{"authentication.kubernetes.io/credential-id":["JTI=7a"]}"#;
        let call = call.replace(&format!(r#""username":"{OPERATOR_USER}""#), id);
        let call: Call = serde_json::from_str(&call).unwrap();
        assert!(call.has_token("7a") && !call.has_token("7"));
    }
}
