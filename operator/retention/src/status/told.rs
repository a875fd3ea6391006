//! What users are told of a policy, in events (`docs/retention.md`, R52).
//!
//! An event follows from a status that was stored and the one before it. So it is recorded once, whoever leads and
//! however often a leader starts.

use k8s_openapi::api::core::v1::ObjectReference;
use trainjob_api::lifecycle::v1alpha1::{
    ACKNOWLEDGE_ANNOTATION,
    status::{MissingRule, PolicyCondition, PolicyReason, RetentionPolicyStatus, Trip},
};
use trainjob_core::event::Severity;
use trainjob_engine::events::Event;
use trainjob_retention_core::stored::PolicyKind;

use crate::{cluster_state::PolicyKey, words};

/// Something to tell about a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News<'s> {
    /// It waits for an acknowledgement, which it did not, or for another one.
    Tripped(&'s Trip),
    /// Somebody has acknowledged its trip.
    Acknowledged(&'s Trip),
    /// It deletes nothing because the time is not known.
    ClockSuspect,
    /// It deletes nothing because these rights are missing.
    Forbidden(&'s [MissingRule]),
}

/// What is new in the status `after` the one `before`. `acknowledged` is the trip that the annotation of the policy names.
pub(super) fn news<'s>(
    before: &'s RetentionPolicyStatus,
    after: &'s RetentionPolicyStatus,
    acknowledged: Option<&str>,
) -> Vec<News<'s>> {
    let is_known = |trip: &&Trip| before.trip.as_ref().is_some_and(|known| known.id == trip.id);
    let tripped = after.trip.as_ref().filter(|trip| !is_known(trip)).map(News::Tripped);
    // One that was outgrown has another id now, and was not let go.
    let ended = before.trip.as_ref().filter(|_| after.trip.is_none());
    let ended = ended.filter(|trip| Some(trip.id.as_str()) == acknowledged);
    let is_suspect = is_suspect(after) && !is_suspect(before);
    let suspect = is_suspect.then_some(News::ClockSuspect);
    let missing = |status: &'s RetentionPolicyStatus| status.missing_rules.as_deref();
    let forbidden = missing(after).filter(|rules| missing(before) != Some(*rules));
    let forbidden = forbidden.map(News::Forbidden);
    [ended.map(News::Acknowledged), tripped, suspect, forbidden].into_iter().flatten().collect()
}

fn is_suspect(status: &RetentionPolicyStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|condition| {
        condition.type_ == PolicyCondition::Enforcing.as_str()
            && condition.reason == PolicyReason::ClockSuspect.as_str()
    })
}

/// The event that tells it of the policy with this UID.
pub(super) fn event(key: &PolicyKey, uid: &str, news: News<'_>) -> Event {
    let kind = match key.kind {
        PolicyKind::Namespaced => "RetentionPolicy",
        PolicyKind::Cluster => "ClusterRetentionPolicy",
    };
    let (severity, reason, note) = match news {
        News::Tripped(trip) => (Severity::Warning, "Tripped", tripped(trip)),
        News::Acknowledged(trip) => (Severity::Normal, "Acknowledged", acknowledged(trip)),
        News::ClockSuspect => {
            let note = "Nothing is deleted: the API server's time is not known well enough";
            (Severity::Warning, "ClockSuspect", note.to_owned())
        }
        News::Forbidden(rules) => (Severity::Warning, "Forbidden", forbidden(rules)),
    };
    let regarding = ObjectReference {
        api_version: Some("lifecycle.trainjob.dev/v1alpha1".to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(key.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
        name: Some(key.name.to_string()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    };
    Event { regarding, severity, reason, action: "Judge", note }
}

fn tripped(trip: &Trip) -> String {
    let Trip { id, reason, unexpected, stock, .. } = trip;
    let (waits, them) =
        (words::wait(*unexpected, *stock), words::either(*unexpected, "it", "them"));
    format!(
        "{waits} ({reason}); to allow {them}, set the annotation {ACKNOWLEDGE_ANNOTATION} to {id}"
    )
}

fn forbidden(rules: &[MissingRule]) -> String {
    let note = format!("Nothing is deleted: the engine may not {}", words::rights(rules));
    // A note has 1,024 bytes at most.
    if note.len() <= 1_024 { note } else { note.chars().take(250).collect() }
}

fn acknowledged(trip: &Trip) -> String {
    let Trip { id, unexpected, .. } = trip;
    let waited = words::objects(*unexpected);
    format!("The trip {id} is acknowledged: {waited} that waited may be deleted")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use trainjob_api::time::Timestamp;

    use super::*;

    fn trip(id: &str) -> Trip {
        let reason = "MassDelete".to_owned();
        Trip { id: id.to_owned(), reason, unexpected: 70, stock: 90, ..Trip::default() }
    }

    fn status(trip_id: Option<&str>, enforcing: PolicyReason) -> RetentionPolicyStatus {
        let condition = Condition {
            type_: PolicyCondition::Enforcing.as_str().to_owned(),
            status: "False".to_owned(),
            reason: enforcing.as_str().to_owned(),
            last_transition_time: Timestamp(0).into(),
            message: String::new(),
            observed_generation: None,
        };
        let conditions = Some(vec![condition]);
        RetentionPolicyStatus {
            trip: trip_id.map(trip),
            conditions,
            ..RetentionPolicyStatus::default()
        }
    }

    #[test]
    fn trip_is_told_when_it_is_stored_and_an_acknowledgement_when_that_ended_it() {
        let (one, other) = (trip("1"), trip("2"));
        for (before, after, acknowledged, expected) in [
            (None, None, None, vec![]),
            (None, Some("1"), None, vec![News::Tripped(&one)]),
            (Some("1"), Some("1"), None, vec![]),
            (Some("1"), Some("1"), Some("1"), vec![]),
            // Outgrown.
            (Some("1"), Some("2"), Some("1"), vec![News::Tripped(&other)]),
            (Some("1"), None, Some("1"), vec![News::Acknowledged(&one)]),
            // Ended by an edit.
            (Some("1"), None, None, vec![]),
            (Some("2"), None, Some("1"), vec![]),
            (None, None, Some("1"), vec![]),
        ] {
            let enforcing = PolicyReason::Enforcing;
            let (before, after) = (status(before, enforcing), status(after, enforcing));
            assert_eq!(news(&before, &after, acknowledged), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn clock_suspect_is_told_once() {
        use PolicyReason::{ClockSuspect, Enforcing, NotReady};
        for (before, after, expected) in [
            (Enforcing, ClockSuspect, vec![News::ClockSuspect]),
            (NotReady, ClockSuspect, vec![News::ClockSuspect]),
            (ClockSuspect, ClockSuspect, vec![]),
            (ClockSuspect, Enforcing, vec![]),
        ] {
            let (before, after) = (status(None, before), status(None, after));
            assert_eq!(news(&before, &after, None), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn missing_rights_are_told_when_they_are_stored_and_again_when_they_are_others() {
        let rule = |verb: &str| MissingRule {
            api_groups: vec!["batch".to_owned()],
            resources: vec!["jobs".to_owned()],
            verbs: vec![verb.to_owned()],
        };
        let (none, list, delete) = (None, Some(vec![rule("list")]), Some(vec![rule("delete")]));
        for (before, after, expected) in [
            (&none, &none, None),
            (&none, &list, Some("list jobs.batch")),
            (&list, &list, None),
            (&list, &delete, Some("delete jobs.batch")),
            (&list, &none, None),
        ] {
            let [before, after] = [before, after].map(|rules| RetentionPolicyStatus {
                missing_rules: rules.clone(),
                ..RetentionPolicyStatus::default()
            });
            let key =
                PolicyKey { kind: PolicyKind::Namespaced, namespace: "a".into(), name: "p".into() };
            let told = news(&before, &after, None).into_iter();
            let notes: Vec<_> = told.map(|news| event(&key, "u", news).note).collect();
            let expected =
                expected.map(|what| format!("Nothing is deleted: the engine may not {what}"));
            assert_eq!(notes, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn event_says_how_many_wait_and_how_to_allow_them() {
        let cluster =
            PolicyKey { kind: PolicyKind::Cluster, namespace: "".into(), name: "all".into() };
        let event = event(&cluster, "u", News::Tripped(&trip("7-a-1")));
        assert_eq!(
            event.note,
            "70 of 90 objects wait (MassDelete); to allow them, set the annotation \
             lifecycle.trainjob.dev/acknowledge-trip to 7-a-1"
        );
        assert_eq!(event.regarding.kind.as_deref(), Some("ClusterRetentionPolicy"));
        assert_eq!(event.regarding.namespace, None);
    }
}
