//! Tells users of objects what is neither a deletion nor a failure (`docs/retention.md`, R36, R47 and R52).
//!
//! The finalizers of an object and its annotations are in no fact that is remembered. They are asked for only when the event
//! is to be sent, with a list of one, because the right to list is there and the right to get may not be.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, api::ListParams, core::Request};
use serde::Deserialize;
use trainjob_api::time::Timestamp;
use trainjob_core::{event::Severity, recreation::Origin};
use trainjob_engine::{answer::timed, error::RequestError};
use trainjob_retention_core::{
    plan::Notice,
    policy::PolicyReference,
    uid::Uid,
    wish::{HOLD_ANNOTATION, HoldWish, TTL_ANNOTATION, TtlWish, Wishes},
};

use super::{Remover, collection, events, served::Served};
use crate::{
    cluster_state::{ObjectNews, What},
    key::Key,
    words,
};

#[derive(Deserialize)]
struct Page {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: ObjectMeta,
}

/// What an event says.
type Said = (Severity, &'static str, String);

impl Remover {
    /// Hands in the events of what there is to tell.
    pub(super) fn tell(&self, news: Vec<ObjectNews>) {
        for ObjectNews { key, uid, policy, what } in news {
            let Some(served) = self.target(key.target) else { continue };
            match what {
                What::Notice(Notice::StuckTerminating { since }) => {
                    self.tell_stuck(key, served, uid, since);
                }
                What::Notice(notice @ (Notice::HoldInvalid { .. } | Notice::OverrideInvalid)) => {
                    self.tell_unreadable((key, served, uid), policy, notice);
                }
                What::Notice(notice) => {
                    if let Some(said) = said(&policy, notice, None) {
                        self.record(events::of_object(&key, &served, &uid, said));
                    }
                }
                What::RecreateLoop(origin) => {
                    let said = said_of_loop(&policy, &origin);
                    self.record(events::of_object(&key, &served, &uid, said));
                }
            }
        }
    }

    fn tell_stuck(&self, key: Key, served: Served, uid: Uid, since: Timestamp) {
        let (client, namespace) = (self.client.clone(), Arc::clone(&key.object.namespace));
        let event = async move {
            match metadata(&client, &key, &served, &uid).await {
                Ok(metadata) => {
                    let said = said_of_finalizers(&metadata?, since);
                    Some(events::of_object(&key, &served, &uid, said))
                }
                Err(error) => {
                    tracing::debug!(object = %key.object, %error, "cannot ask for its finalizers");
                    None
                }
            }
        };
        self.events.record_late(&namespace, Box::pin(event));
    }

    fn tell_unreadable(
        &self,
        (key, served, uid): (Key, Served, Uid),
        policy: PolicyReference,
        notice: Notice,
    ) {
        let (client, namespace) = (self.client.clone(), Arc::clone(&key.object.namespace));
        let event = async move {
            let said = match metadata(&client, &key, &served, &uid).await {
                // Whoever has corrected it meanwhile need not be told.
                Ok(metadata) => said(&policy, notice, Some(unreadable(&metadata?, notice)?)),
                Err(error) => {
                    tracing::debug!(object = %key.object, %error, "cannot ask for its annotations");
                    said(&policy, notice, None)
                }
            };
            Some(events::of_object(&key, &served, &uid, said?))
        };
        self.events.record_late(&namespace, Box::pin(event));
    }
}

/// The annotation that a notice is about, if it cannot be read.
fn unreadable(metadata: &ObjectMeta, notice: Notice) -> Option<&str> {
    let annotations = metadata.annotations.as_ref()?;
    let wishes = Wishes::read(annotations);
    let (name, is_unreadable) = match notice {
        Notice::HoldInvalid { .. } => (HOLD_ANNOTATION, wishes.hold == Some(HoldWish::Unreadable)),
        _ => (TTL_ANNOTATION, wishes.ttl == Some(TtlWish::Unreadable)),
    };
    annotations.get(name).map(String::as_str).filter(|_| is_unreadable)
}

/// What is said that follows from what is known, and from what is `written` in an annotation that cannot be read; `None`
/// where finalizers have to be asked for.
fn said(policy: &PolicyReference, notice: Notice, written: Option<&str>) -> Option<Said> {
    let says = written.map(|written| format!(" says {} and", words::quoted(written)));
    let says = says.unwrap_or_default();
    Some(match notice {
        Notice::Held { until } => {
            let note = format!("A hold keeps it from {policy} until {until}");
            (Severity::Normal, "Held", note)
        }
        Notice::HoldEnding { until } => {
            let note = format!("Its hold ends at {until}; {policy} deletes it then");
            (Severity::Normal, "HoldEnding", note)
        }
        Notice::HoldCapped { until } => {
            let note = format!(
                "Annotation {HOLD_ANNOTATION} asks for more than is allowed; {policy} deletes it at {until}"
            );
            (Severity::Warning, "HoldCapped", note)
        }
        Notice::HoldInvalid { until } => {
            let note = format!(
                "Annotation {HOLD_ANNOTATION}{says} is no RFC 3339 time such as {until}; {policy} deletes it at {until}, as late as a hold may last"
            );
            (Severity::Warning, "HoldInvalid", cut(note))
        }
        Notice::OverrideInvalid => {
            let note = format!(
                "Annotation {TTL_ANNOTATION}{says} is no number of seconds such as 604800; {policy} keeps it as long as a hold may last"
            );
            (Severity::Warning, "OverrideInvalid", cut(note))
        }
        Notice::OverrideClamped { due } => {
            let note = format!(
                "Annotation {TTL_ANNOTATION} is out of the limits of cluster policies; {policy} deletes it at {due}"
            );
            (Severity::Warning, "OverrideClamped", note)
        }
        Notice::StuckTerminating { .. } => return None,
    })
}

fn said_of_loop(policy: &PolicyReference, origin: &Origin) -> Said {
    let note = format!(
        "{policy} has deleted its name three times within an hour, and it was made again by {origin}"
    );
    (Severity::Warning, "RecreateLoop", cut(note))
}

fn said_of_finalizers(metadata: &ObjectMeta, since: Timestamp) -> Said {
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default().join(", ");
    let note = if finalizers.is_empty() {
        format!("It has been terminating since {since}, without finalizers")
    } else {
        format!("It has been terminating since {since}; finalizers: {finalizers}")
    };
    (Severity::Warning, "StuckTerminating", cut(note))
}

/// A note has 1,024 bytes at most, and a character four.
fn cut(note: String) -> String {
    if note.len() <= 1_024 { note } else { note.chars().take(250).collect() }
}

/// The metadata of an object; `None` if it is gone, or is another one by now.
async fn metadata(
    client: &Client,
    key: &Key,
    served: &Served,
    uid: &Uid,
) -> Result<Option<ObjectMeta>, RequestError> {
    let target = &served.target;
    let Some(version) = &served.version else { return Ok(None) };
    let path = collection(&target.api_group, version, &target.resource);
    let path = path.in_namespace(&key.object.namespace).to_string();
    let params = ListParams::default().fields(&format!("metadata.name={}", key.object.name));
    let request = Request::new(path).list_metadata(&params);
    let request = request.map_err(|error| RequestError::Unbuildable(Box::new(error)))?;
    let page: Page = timed(client.request(request)).await?;
    let metadata = page.items.into_iter().map(|item| item.metadata);
    let is_it = |found: &ObjectMeta| found.uid.as_deref().map(Uid::from).as_ref() == Some(uid);
    Ok(metadata.into_iter().find(is_it))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const AT: Timestamp = Timestamp(1_795_329_000);

    fn policy() -> PolicyReference {
        PolicyReference { namespace: Some("a".into()), name: "p".into() }
    }

    #[test]
    fn a_note_names_finalizers_as_far_as_there_is_room() {
        let metadata = |finalizers: &[String]| ObjectMeta {
            finalizers: Some(finalizers.to_vec()),
            ..ObjectMeta::default()
        };
        let long = "ü".repeat(60);
        for (finalizers, words) in [
            (vec!["a/b".to_owned(), "c/d".to_owned()], "finalizers: a/b, c/d"),
            (vec![], "without finalizers"),
            (vec![long; 30], "finalizers: ü"),
        ] {
            let (severity, reason, note) = said_of_finalizers(&metadata(&finalizers), AT);
            assert_eq!((severity, reason), (Severity::Warning, "StuckTerminating"));
            assert!(note.contains(words) && note.len() <= 1_024, "{note}");
        }
    }

    #[test]
    fn a_note_says_who_makes_an_object_again() {
        let labels = json!({"labels": {"app.kubernetes.io/instance": "train"}});
        let origin = Origin::of(&serde_json::from_value(labels).unwrap());
        let (severity, reason, note) = said_of_loop(&policy(), &origin);
        assert_eq!((severity, reason), (Severity::Warning, "RecreateLoop"));
        assert!(
            note.starts_with("RetentionPolicy a/p") && note.contains("instance train"),
            "{note}"
        );
    }

    #[test]
    fn what_cannot_be_read_is_quoted_with_an_example_of_what_can() {
        let annotations = [(HOLD_ANNOTATION, "tomorrow"), (TTL_ANNOTATION, "7d")];
        let annotations = annotations.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let metadata =
            ObjectMeta { annotations: Some(annotations.into()), ..ObjectMeta::default() };
        for (notice, expected) in [
            (
                Notice::HoldInvalid { until: AT },
                "hold-until says \"tomorrow\" and is no RFC 3339 time such as 2026-11-22T06:30:00Z;",
            ),
            (
                Notice::OverrideInvalid,
                "ttl-seconds-after-finished says \"7d\" and is no number of seconds such as 604800;",
            ),
        ] {
            let written = unreadable(&metadata, notice);
            let (.., note) = said(&policy(), notice, written).unwrap();
            assert!(note.contains(expected), "{note}");
        }
    }

    #[test]
    fn what_was_corrected_meanwhile_is_not_told_as_unreadable() {
        for (hold, ttl) in [(Some("2026-11-22T06:30:00Z"), Some("60")), (None, None)] {
            let annotations = [(HOLD_ANNOTATION, hold), (TTL_ANNOTATION, ttl)].into_iter();
            let annotations =
                annotations.filter_map(|(name, text)| Some((name.to_owned(), text?.to_owned())));
            let metadata =
                ObjectMeta { annotations: Some(annotations.collect()), ..ObjectMeta::default() };
            for notice in [Notice::HoldInvalid { until: AT }, Notice::OverrideInvalid] {
                assert_eq!(unreadable(&metadata, notice), None);
            }
        }
    }

    #[test]
    fn people_alert_on_reasons_so_they_stay() {
        for (notice, expected) in [
            (Notice::Held { until: AT }, Some((Severity::Normal, "Held"))),
            (Notice::HoldEnding { until: AT }, Some((Severity::Normal, "HoldEnding"))),
            (Notice::HoldCapped { until: AT }, Some((Severity::Warning, "HoldCapped"))),
            (Notice::HoldInvalid { until: AT }, Some((Severity::Warning, "HoldInvalid"))),
            (Notice::OverrideInvalid, Some((Severity::Warning, "OverrideInvalid"))),
            (Notice::OverrideClamped { due: AT }, Some((Severity::Warning, "OverrideClamped"))),
            (Notice::StuckTerminating { since: AT }, None),
        ] {
            let found = said(&policy(), notice, None);
            assert!(
                found.iter().all(|(.., note)| note.contains("RetentionPolicy a/p")),
                "{found:?}"
            );
            assert_eq!(found.map(|(severity, reason, _)| (severity, reason)), expected);
        }
    }
}
