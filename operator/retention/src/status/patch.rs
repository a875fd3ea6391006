//! The patch that makes one status of another.

use serde_json::{Map, Value, json};
use trainjob_api::lifecycle::v1alpha1::status::RetentionPolicyStatus;

use super::seen::SeenPolicy;

/// A merge patch that makes the status of a policy this one. It is refused if the policy is another one by now, or was
/// written meanwhile (R40), so it need not say what stays.
pub(super) fn patch(status: &RetentionPolicyStatus, seen: &SeenPolicy) -> Value {
    let fields = difference(&json!(seen.status), json!(status));
    let metadata = json!({"uid": seen.uid, "resourceVersion": seen.resource_version});
    json!({"metadata": metadata, "status": fields})
}

/// What makes `after` of `before` (RFC 7396). Objects are merged at every depth, so at every depth a field that is gone has
/// to be removed: a trip of the whole policy is one that names no namespaces any more.
fn difference(before: &Value, after: Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, &after) else { return after };
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let mut patch: Map<_, _> = removed.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in after {
        match before.get(name) {
            Some(known) if known == value => {}
            Some(known) => {
                patch.insert(name.clone(), difference(known, value.clone()));
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use trainjob_api::lifecycle::v1alpha1::status::{Counts, NextDeletion, Trip, TrippedNamespace};

    use super::*;

    fn status(change: impl FnOnce(&mut RetentionPolicyStatus)) -> RetentionPolicyStatus {
        let served_version = Some("v1".to_owned());
        let mut status =
            RetentionPolicyStatus { served_version, ..RetentionPolicyStatus::default() };
        change(&mut status);
        status
    }

    fn trip(namespaces: Option<&[&str]>) -> RetentionPolicyStatus {
        let named = |name: &&str| TrippedNamespace { name: (*name).to_owned(), unexpected: 60 };
        let namespaces = namespaces.map(|names| names.iter().map(named).collect());
        status(|it| it.trip = Some(Trip { namespaces, ..Trip::default() }))
    }

    #[test]
    fn whatever_was_there_the_patch_makes_the_status_of_it() {
        let counts = |finished, due| {
            status(|it| it.counts = Some(Counts { finished, due, ..Counts::default() }))
        };
        let next = |name: &str| {
            let deletion = NextDeletion { name: name.to_owned(), ..NextDeletion::default() };
            status(|it| it.next = Some(vec![deletion]))
        };
        let statuses = [
            RetentionPolicyStatus::default(),
            status(|it| it.observed_generation = Some(1)),
            counts(7, 1),
            counts(8, 1),
            next("a"),
            next("b"),
            trip(None),
            trip(Some(&["one"])),
            trip(Some(&["one", "two"])),
        ];
        for before in &statuses {
            for after in &statuses {
                let seen = SeenPolicy { status: before.clone(), ..SeenPolicy::default() };
                let mut merged = json!(before);
                json_patch::merge(&mut merged, &patch(after, &seen)["status"]);
                assert_eq!(merged, json!(after), "from {}", json!(before));
            }
        }
    }

    #[test]
    fn a_patch_is_fenced_and_says_only_what_changes() {
        let seen = SeenPolicy {
            uid: "u".to_owned(),
            resource_version: "7".to_owned(),
            generation: 1,
            status: trip(Some(&["one"])),
        };
        let now = RetentionPolicyStatus { observed_generation: Some(1), ..trip(None) };
        let expected = json!({
            "metadata": {"uid": "u", "resourceVersion": "7"},
            "status": {"observedGeneration": 1, "trip": {"namespaces": null}},
        });
        assert_eq!(patch(&now, &seen), expected);
    }
}
