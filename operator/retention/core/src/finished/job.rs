//! Jobs of Kubernetes.
//!
//! `SuccessCriteriaMet` and `FailureTarget` are no ends: Pods still run then. A failed Job has no `completionTime`, so
//! the condition tells the time of either end.

use super::conditions;
use crate::outcome::{Outcome, Reading};

/// Reads a Job.
pub(super) fn read(object: &str) -> Result<Reading, serde_json::Error> {
    let types = [("Complete", Outcome::Succeeded), ("Failed", Outcome::Failed)];
    conditions::read(object, types)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::time::Timestamp;

    use super::*;
    use crate::{outcome::End, seconds::Seconds};

    fn job(status: &Value) -> Reading {
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "train", "namespace": "a", "uid": "u", "resourceVersion": "8",
                "creationTimestamp": "2026-11-22T06:00:00Z", "generation": 1,
                "labels": {"batch.kubernetes.io/job-name": "train"}},
            "spec": {"backoffLimit": 0, "ttlSecondsAfterFinished": 3600, "template": {"spec": {
                "containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never"}}},
            "status": status,
        });
        read(&job.to_string()).unwrap()
    }

    fn condition(type_: &str, reason: &str, second: u32) -> Value {
        let time = format!("2026-11-22T06:30:{second:02}Z");
        json!({"type": type_, "status": "True", "reason": reason, "message": "m",
            "lastProbeTime": time, "lastTransitionTime": time})
    }

    #[test]
    fn a_job_ends_with_complete_or_failed_and_nothing_else() {
        let at = |second: i64| Some(Timestamp(1_795_329_000 + second));
        let backoff = "BackoffLimitExceeded";
        for (status, expected) in [
            (
                json!({"succeeded": 1, "completionTime": "2026-11-22T06:30:04Z", "conditions": [
                    condition("SuccessCriteriaMet", "CompletionsReached", 3),
                    condition("Complete", "CompletionsReached", 5),
                ]}),
                Some(End::new(Outcome::Succeeded, "CompletionsReached", at(5))),
            ),
            (
                json!({"failed": 1, "conditions": [
                    condition("FailureTarget", backoff, 3), condition("Failed", backoff, 7),
                ]}),
                Some(End::new(Outcome::Failed, backoff, at(7))),
            ),
            (
                json!({"active": 1, "conditions": [condition("SuccessCriteriaMet", "SuccessPolicy", 3)]}),
                None,
            ),
            (json!({"active": 1, "conditions": [condition("FailureTarget", backoff, 3)]}), None),
            (json!({"conditions": [condition("Suspended", "JobSuspended", 3)]}), None),
            (json!({"conditions": [{"type": "Failed", "status": "False"}]}), None),
            (
                json!({"conditions": [{"type": "Failed", "status": "True"}]}),
                Some(End::new(Outcome::Failed, "", None)),
            ),
            (json!({}), None),
            (Value::Null, None),
        ] {
            assert_eq!(job(&status).end, expected, "{status}");
        }
    }

    #[test]
    fn its_own_ttl_is_in_its_spec() {
        assert_eq!(job(&json!({})).own_ttl, Seconds::new(3600));
        for (spec, expected) in [
            (json!({}), None),
            (json!({"ttlSecondsAfterFinished": 0}), Some(0)),
            (json!({"ttlSecondsAfterFinished": -1}), None),
            (json!({"ttlSecondsAfterFinished": null}), None),
        ] {
            let reading = read(&json!({"metadata": {}, "spec": spec}).to_string()).unwrap();
            assert_eq!(reading.own_ttl.map(Seconds::get), expected, "{spec}");
        }
    }

    #[test]
    fn what_is_no_job_is_not_taken_for_a_finished_one() {
        for text in
            ["", "7", "null", r#"{"status": {"conditions": "Failed"}}"#, r#"{"metadata": 1}"#]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
