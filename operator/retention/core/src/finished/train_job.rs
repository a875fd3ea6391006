//! TrainJobs, whoever manages them: the policy asked for them.

use trainjob_api::conditions::{COMPLETE, FAILED, REASON_DEADLINE_EXCEEDED};

use super::conditions;
use crate::outcome::{Guards, Outcome, Reading};

/// Reads a TrainJob.
pub(super) fn read(object: &str) -> Result<Reading, serde_json::Error> {
    let types = [(COMPLETE, Outcome::Succeeded), (FAILED, Outcome::Failed)];
    let reading = conditions::read(object, types)?;
    let end = reading.end.as_ref();
    let release = end.is_some_and(|end| {
        end.outcome == Outcome::Failed && end.reason == REASON_DEADLINE_EXCEEDED
    });
    Ok(Reading { guards: Guards { release, archive: false }, ..reading })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::time::Timestamp;

    use super::*;
    use crate::{outcome::End, seconds::Seconds};

    fn train_job(conditions: &Value) -> Reading {
        let train_job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "llm"},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "managedBy": "kueue.x-k8s.io/multikueue",
                "suspend": false, "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 0},
            "status": {"conditions": conditions, "jobsStatus": [{"name": "node", "succeeded": 1}]},
        });
        read(&train_job.to_string()).unwrap()
    }

    fn condition(type_: &str, reason: &str, second: u32) -> Value {
        json!({"type": type_, "status": "True", "reason": reason, "message": "m",
            "lastTransitionTime": format!("2026-11-22T06:30:{second:02}Z")})
    }

    #[test]
    fn a_train_job_ends_with_its_first_terminal_condition() {
        let at = |second: i64| Some(Timestamp(1_795_329_000 + second));
        let resumed = json!({"type": "Suspended", "status": "False", "reason": "Resumed",
            "lastTransitionTime": "2026-11-22T06:00:00Z"});
        let (complete, deadline) = ("AllJobsCompleted", "DeadlineExceeded");
        for (conditions, expected, release) in [
            (
                json!([resumed, condition("Complete", complete, 1)]),
                Some(End::new(Outcome::Succeeded, complete, at(1))),
                false,
            ),
            (
                json!([resumed, condition("Failed", "FailedJobs", 2)]),
                Some(End::new(Outcome::Failed, "FailedJobs", at(2))),
                false,
            ),
            (
                json!([condition("Failed", deadline, 3), condition("Waiting", "PodsRunning", 4)]),
                Some(End::new(Outcome::Failed, deadline, at(3))),
                true,
            ),
            (
                json!([condition("Failed", deadline, 5), condition("Complete", complete, 1)]),
                Some(End::new(Outcome::Succeeded, complete, at(1))),
                false,
            ),
            (json!([resumed, condition("Waiting", "RuntimeNotFound", 1)]), None, false),
            (Value::Null, None, false),
        ] {
            let reading = train_job(&conditions);
            assert_eq!((reading.end, reading.guards.release), (expected, release), "{conditions}");
            assert_eq!(reading.own_ttl, Seconds::new(0));
        }
    }
}
