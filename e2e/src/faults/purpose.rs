//! What a call is for, in words that are the same in every run.

use serde_json::Value;

use crate::faults::proxy::Call;

/// The aim of a status write that is about nothing but counts.
const COUNTS: &str = "counts";

/// The status writes of retention policies, and of records.
const STATUSES: [&str; 2] = ["patch retentionpolicies status", "update trainjobrecords status"];

/// Whether a call with this purpose may be made together with the next one, as writes of counts are that
/// change quickly: how many there are then depends on how busy the machine is.
pub(super) fn is_coalesced(purpose: &str) -> bool {
    purpose.ends_with(COUNTS) || STATUSES.iter().any(|status| purpose.starts_with(status))
}

/// The verb, the kind, the name and what the call is to bring about, such as
/// `patch trainjobs status job Failed`.
#[must_use]
pub(super) fn purpose(call: &Call) -> String {
    let (name, aim) = match (call.verb, call.resource.as_str(), call.subresource.as_str()) {
        // These names are made from UIDs and chance.
        (_, "trainjobrecords", _) | ("patch", "pods", _) => ("", String::new()),
        // The names of events are made from UIDs and times.
        ("create", "events", _) => ("", text(&call.json(), "reason").to_owned()),
        ("patch", "trainjobs", "status") => (call.name.as_str(), status_aim(&call.json())),
        ("patch", "jobsets", "") => (call.name.as_str(), suspend_aim(call.suspend).to_owned()),
        ("list", "pods", "") if call.namespace.is_empty() => ("", "everywhere".to_owned()),
        _ => (call.name.as_str(), String::new()),
    };
    let words = [call.verb, &call.resource, &call.subresource, name, &aim];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The kind of a call, without what it is about: `patch trainjobs status`. What is about no kind of object asks for the
/// version of the API server, for its date.
#[must_use]
pub(super) fn kind(verb: &str, resource: &str, subresource: &str) -> String {
    let resource = if resource.is_empty() { "version" } else { resource };
    let words = [verb, resource, subresource];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The conditions that a status is to have, or that it is about nothing but counts.
fn status_aim(patch: &Value) -> String {
    let conditions = patch.pointer("/status/conditions").and_then(Value::as_array);
    let Some(conditions) = conditions else { return COUNTS.to_owned() };
    let brief = |condition: &Value| {
        let not = if text(condition, "status") == "True" { "" } else { "not-" };
        format!("{not}{}", text(condition, "type"))
    };
    match conditions.as_slice() {
        [] => "no-condition".to_owned(),
        some => some.iter().map(brief).collect::<Vec<_>>().join("+"),
    }
}

const fn suspend_aim(suspend: Option<bool>) -> &'static str {
    match suspend {
        Some(true) => "suspend",
        Some(false) => "resume",
        None => "",
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(words: [&'static str; 4], name: &str, suspend: Option<bool>, body: &Value) -> Call {
        let [verb, resource, subresource, namespace] = words;
        Call {
            process: 1,
            verb,
            group: String::new(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: None,
            version: None,
            owner: None,
            suspend,
            body: body.to_string().into(),
        }
    }

    #[test]
    fn a_kind_is_a_verb_and_a_resource() {
        for (words, expected) in [
            (["patch", "trainjobs", "status"], "patch trainjobs status"),
            (["watch", "jobsets", ""], "watch jobsets"),
            (["get", "", ""], "get version"),
        ] {
            assert_eq!(kind(words[0], words[1], words[2]), expected);
        }
    }

    #[test]
    fn a_purpose_tells_apart_what_is_done_to_one_object_and_is_the_same_in_every_run() {
        let status = ["patch", "trainjobs", "status", "ns"];
        let conditions = json!({"status": {"conditions": [
            {"type": "Suspended", "status": "False"}, {"type": "Failed", "status": "True"},
        ]}});
        let none = json!({"status": {"conditions": [], "jobsStatus": []}});
        let counts = json!({"status": {"jobsStatus": []}});
        let event = json!({"metadata": {"name": "job.0123"}, "reason": "TTLExpired"});
        for (words, name, suspend, body, expected) in [
            (status, "job", None, conditions, "patch trainjobs status job not-Suspended+Failed"),
            (status, "job", None, none, "patch trainjobs status job no-condition"),
            (status, "job", None, counts, "patch trainjobs status job counts"),
            (
                ["patch", "jobsets", "", "ns"],
                "job",
                Some(true),
                json!({}),
                "patch jobsets job suspend",
            ),
            (
                ["patch", "jobsets", "", "ns"],
                "job",
                Some(false),
                json!({}),
                "patch jobsets job resume",
            ),
            (["delete", "jobsets", "", "ns"], "job", None, json!({}), "delete jobsets job"),
            (["create", "events", "", "ns"], "job.0123", None, event, "create events TTLExpired"),
            (["list", "pods", "", ""], "", None, Value::Null, "list pods everywhere"),
            (["list", "pods", "", "ns"], "", None, Value::Null, "list pods"),
            (["patch", "pods", "", "ns"], "job-node-0-0-x7k2p", None, Value::Null, "patch pods"),
            (
                ["update", "trainjobrecords", "status", "ns"],
                "job-4f1c2a9e",
                None,
                Value::Null,
                "update trainjobrecords status",
            ),
        ] {
            assert_eq!(purpose(&call(words, name, suspend, &body)), expected);
        }
    }
}
