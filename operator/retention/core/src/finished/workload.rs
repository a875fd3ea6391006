//! Workloads of Kueue.
//!
//! A Workload stands for a job, and Kueue makes another one for a job that has none and has not finished. So a Workload
//! that finished without its job has a [`Bond`] to it, and so has one that Kueue has given up: that one's job waits, and
//! would run again. A Workload that a user has deactivated has not finished.

use serde::Deserialize;

use super::conditions::{Condition, holding};
use crate::{
    metadata::{Metadata, or_default},
    outcome::{Bond, End, Outcome, Reading},
};

/// What the reason of `Evicted` begins with if Kueue deactivated the Workload.
const DEACTIVATED_BY_KUEUE: &str = "DeactivatedDueTo";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Workload {
    metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    spec: Spec,
    #[serde(deserialize_with = "or_default")]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    active: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

/// Reads a Workload.
pub(super) fn read(object: &str) -> Result<Reading, serde_json::Error> {
    let Workload { metadata, spec, status } = serde_json::from_str(object)?;
    let (end, bond) = end(&spec, &status.conditions);
    Ok(Reading { bond, ..Reading::new(metadata, end) })
}

fn end(spec: &Spec, conditions: &[Condition]) -> (Option<End>, Bond) {
    if let Some(finished) = holding(conditions, "Finished") {
        let (outcome, bond) = match finished.reason.as_str() {
            "Succeeded" => (Outcome::Succeeded, Bond::None),
            "Failed" => (Outcome::Failed, Bond::None),
            // It never started, was replaced, or does not fit its job any more: nothing is said about the job.
            _ => (Outcome::Other, Bond::UntilOwnerFinished),
        };
        return (Some(finished.end(outcome)), bond);
    }
    let evicted = holding(conditions, "Evicted").filter(|_| spec.active == Some(false));
    let given_up = evicted.and_then(|evicted| {
        let reason = evicted.reason.strip_prefix(DEACTIVATED_BY_KUEUE)?;
        Some(End::new(Outcome::Deactivated, reason, evicted.last_transition_time))
    });
    let bond = if given_up.is_some() { Bond::OnlyWithOwner } else { Bond::UntilOwnerFinished };
    (given_up, bond)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::time::Timestamp;

    use super::*;

    fn workload(active: Option<bool>, conditions: &Value) -> (Option<End>, Bond) {
        let workload = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
            "metadata": {"name": "job-train-3f2a9", "finalizers": ["kueue.x-k8s.io/resource-in-use"]},
            "spec": {"active": active, "queueName": "gpu", "podSets": [{"name": "main", "count": 1}]},
            "status": {"conditions": conditions, "requeueState": {"count": 3}},
        });
        let reading = read(&workload.to_string()).unwrap();
        (reading.end, reading.bond)
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-11-22T06:30:00Z", "observedGeneration": 1})
    }

    #[test]
    fn a_finished_workload_waits_for_its_job_unless_that_has_finished_too() {
        let at = Some(Timestamp(1_795_329_000));
        let admitted = condition("Admitted", "True", "Admitted");
        for (reason, outcome, bond) in [
            ("Succeeded", Outcome::Succeeded, Bond::None),
            ("Failed", Outcome::Failed, Bond::None),
            ("FailedToStart", Outcome::Other, Bond::UntilOwnerFinished),
            ("OutOfSync", Outcome::Other, Bond::UntilOwnerFinished),
            ("WorkloadSliceReplaced", Outcome::Other, Bond::UntilOwnerFinished),
            ("", Outcome::Other, Bond::UntilOwnerFinished),
        ] {
            let conditions = json!([admitted, condition("Finished", "True", reason)]);
            let expected = (Some(End::new(outcome, reason, at)), bond);
            assert_eq!(workload(Some(true), &conditions), expected, "{reason}");
            assert_eq!(workload(Some(false), &conditions), expected, "{reason}");
        }
    }

    #[test]
    fn a_workload_is_deactivated_if_kueue_says_that_it_was_kueue() {
        let at = Some(Timestamp(1_795_329_000));
        let deactivated = |reason| Some(End::new(Outcome::Deactivated, reason, at));
        let by_kueue = "DeactivatedDueToRequeuingLimitExceeded";
        for (active, status, reason, expected) in [
            (Some(false), "True", by_kueue, deactivated("RequeuingLimitExceeded")),
            (
                Some(false),
                "True",
                "DeactivatedDueToMaximumExecutionTimeExceeded",
                deactivated("MaximumExecutionTimeExceeded"),
            ),
            (Some(false), "True", "Deactivated", None),
            (Some(false), "False", by_kueue, None),
            (Some(false), "True", "Preempted", None),
            (Some(true), "True", by_kueue, None),
            (None, "True", by_kueue, None),
        ] {
            let conditions = json!([condition("Evicted", status, reason)]);
            let bond = match expected {
                Some(_) => Bond::OnlyWithOwner,
                None => Bond::UntilOwnerFinished,
            };
            assert_eq!(workload(active, &conditions), (expected, bond), "{active:?} {reason}");
        }
    }

    #[test]
    fn a_workload_that_waits_or_runs_has_not_finished() {
        for conditions in [
            json!([]),
            json!([condition("QuotaReserved", "True", "QuotaReserved")]),
            json!([condition("Finished", "False", "Succeeded")]),
        ] {
            assert_eq!(workload(Some(true), &conditions).0, None, "{conditions}");
        }
    }
}
