//! The records that are kept of the Pods of TrainJobs. Policies are the only way in which they go.

use serde::Deserialize;

use super::conditions::{Condition, holding};
use crate::{
    metadata::{Metadata, or_default},
    outcome::{End, Outcome, Reading},
};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TrainJobRecord {
    metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    outcome: String,
    reason: String,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

/// Reads a record. It is finished when nothing will be added to it.
pub(super) fn read(object: &str) -> Result<Reading, serde_json::Error> {
    let TrainJobRecord { metadata, status } = serde_json::from_str(object)?;
    let outcome = match status.outcome.as_str() {
        "Complete" => Outcome::Succeeded,
        "Failed" | "DeadlineExceeded" => Outcome::Failed,
        _ => Outcome::Other,
    };
    let end = holding(&status.conditions, "Final")
        .map(|condition| End::new(outcome, &status.reason, condition.last_transition_time));
    Ok(Reading::new(metadata, end))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::time::Timestamp;

    use super::*;

    fn record(outcome: &str, conditions: &Value) -> Option<End> {
        let record = json!({
            "apiVersion": "lifecycle.trainjob.dev/v1alpha1", "kind": "TrainJobRecord",
            "metadata": {"name": "llm-3f2a9c1e"}, "spec": {"trainJob": {"name": "llm"}},
            "status": {"outcome": outcome, "reason": "R", "finishedAt": "2026-11-22T06:00:00Z",
                "totals": {"gpuSeconds": 57600}, "conditions": conditions},
        });
        read(&record.to_string()).unwrap().end
    }

    #[test]
    fn a_record_has_finished_when_it_is_final() {
        let condition = |status: &str| {
            json!([{"type": "Exact", "status": "True", "reason": "Counted"},
                {"type": "Final", "status": status, "reason": "AllCounted",
                "lastTransitionTime": "2026-11-22T06:30:00Z"}])
        };
        for (outcome, expected) in [
            ("Complete", Outcome::Succeeded),
            ("Failed", Outcome::Failed),
            ("DeadlineExceeded", Outcome::Failed),
            ("Deleted", Outcome::Other),
            ("", Outcome::Other),
        ] {
            let end = record(outcome, &condition("True"));
            let at = Some(Timestamp(1_795_329_000));
            assert_eq!(end, Some(End::new(expected, "R", at)), "{outcome}");
            assert_eq!(record(outcome, &condition("False")), None, "{outcome}");
        }
        assert_eq!(record("Complete", &json!([])), None);
    }
}
