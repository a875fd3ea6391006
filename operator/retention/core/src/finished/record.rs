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
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use serde_json::{Value, json};
    use trainjob_api::{
        lifecycle::v1alpha1::{
            API_VERSION, TRAIN_JOB_RECORD_KIND,
            record::{RecordedJob, TrainJobRecord, TrainJobRecordSpec, TrainJobRecordStatus},
            record_words,
        },
        time::Timestamp,
    };

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

    /// What the accounting program writes is what is read here.
    #[test]
    fn a_record_is_read_as_its_type_writes_it() {
        use record_words::Outcome as Recorded;
        let (name, at) = ("llm-3f2a9c1e", Timestamp(1_795_329_000));
        let job = RecordedJob { name: "llm".into(), uid: "3f2a9c1e".into(), created_at: None };
        let spec = TrainJobRecordSpec { train_job: job, runtime_ref: None, queue: None };
        let mut record = TrainJobRecord::new(name, spec);
        for outcome in Recorded::ALL {
            let condition = |status: &str| Condition {
                type_: record_words::RecordCondition::Final.as_str().into(),
                status: status.into(),
                reason: record_words::RecordReason::AllCounted.as_str().into(),
                last_transition_time: Time::from(at),
                message: String::new(),
                observed_generation: None,
            };
            let expected = match outcome {
                Recorded::Complete => Outcome::Succeeded,
                Recorded::Failed | Recorded::DeadlineExceeded => Outcome::Failed,
                Recorded::Deleted | Recorded::Running => Outcome::Other,
            };
            for (status, end) in
                [("True", Some(End::new(expected, "R", Some(at)))), ("False", None)]
            {
                record.status = Some(TrainJobRecordStatus {
                    outcome: outcome.as_str().into(),
                    reason: "R".into(),
                    conditions: vec![condition(status)],
                    ..Default::default()
                });
                let written = serde_json::to_value(&record).unwrap();
                assert_eq!(
                    (&written["apiVersion"], &written["kind"]),
                    (&json!(API_VERSION), &json!(TRAIN_JOB_RECORD_KIND))
                );
                assert_eq!(read(&written.to_string()).unwrap().end, end, "{outcome:?} {status}");
            }
        }
    }
}
