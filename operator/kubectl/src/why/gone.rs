//! A TrainJob that is not there: who deleted it, as far as its events say.

use k8s_openapi::api::core::v1::Event;
use kube::Client;

use super::scene::time_of;
use crate::{failure::Failure, read};

/// The reasons of events about an object that the operator or the retention engine has deleted.
const DELETIONS: [&str; 2] = ["TTLExpired", "RetentionDeleted"];

/// What is said of a TrainJob that is `missing`.
pub(super) async fn explain(
    client: &Client,
    (namespace, name): (&str, &str),
    missing: Failure,
) -> Failure {
    let selector = format!("involvedObject.kind=TrainJob,involvedObject.name={name}");
    // Whoever may not read events learns at least that it is missing.
    let events = read::events(client, namespace, &selector).await.unwrap_or_default();
    with_deletion(missing, &events)
}

/// Adds the newest deletion.
fn with_deletion(missing: Failure, events: &[Event]) -> Failure {
    let deletions = events.iter().filter_map(|event| {
        let reason = event.reason.as_deref().filter(|reason| DELETIONS.contains(reason))?;
        Some((time_of(event), reason, event.message.as_deref().unwrap_or_default()))
    });
    let Some((at, reason, message)) = deletions.max_by_key(|(at, ..)| *at) else {
        return missing;
    };
    Failure::Nonsense(format!("{missing}\nhint: {reason} at {at}: {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(reason: &str, at: &str, message: &str) -> Event {
        let event = json!({
            "metadata": {"name": reason}, "involvedObject": {"name": "llm"},
            "reason": reason, "message": message, "lastTimestamp": at,
        });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn the_newest_deletion_is_told_and_nothing_else() {
        let (old, new) = ("2026-11-26T10:00:00Z", "2026-11-26T11:00:00Z");
        for (events, expected) in [
            (vec![], None),
            (vec![event("DeadlineExceeded", new, "m")], None),
            (
                vec![event("RetentionDeleted", new, "by p"), event("TTLExpired", old, "m")],
                Some("hint: RetentionDeleted at 2026-11-26T11:00:00Z: by p"),
            ),
            (
                vec![event("TTLExpired", old, "m"), event("DeadlineExceeded", new, "m")],
                Some("hint: TTLExpired at 2026-11-26T10:00:00Z: m"),
            ),
        ] {
            let missing = Failure::NotFound { names: vec!["llm".into()], namespace: "team".into() };
            let said = with_deletion(missing, &events).to_string();
            assert!(said.starts_with("no TrainJob llm in namespace team"), "{said}");
            assert_eq!(said.lines().nth(1), expected, "{said}");
        }
    }
}
