//! JobSets.

use super::conditions;
use crate::outcome::{Outcome, Reading};

/// Reads a JobSet.
pub(super) fn read(object: &str) -> Result<Reading, serde_json::Error> {
    let types = [("Completed", Outcome::Succeeded), ("Failed", Outcome::Failed)];
    conditions::read(object, types)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trainjob_api::time::Timestamp;

    use super::*;
    use crate::{outcome::End, seconds::Seconds};

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-11-22T06:30:00Z"})
    }

    #[test]
    fn a_job_set_ends_with_completed_or_failed() {
        let at = Some(Timestamp(1_795_329_000));
        let completed = End::new(Outcome::Succeeded, "AllJobsCompleted", at);
        let failed = End::new(Outcome::Failed, "ReachedMaxRestarts", at);
        let resumed = condition("Suspended", "False", "ResumeJobs");
        let policy = condition("StartupPolicyInProgress", "True", "StartupPolicyInProgress");
        for (conditions, expected) in [
            (json!([resumed, condition("Completed", "True", "AllJobsCompleted")]), Some(completed)),
            (json!([condition("Failed", "True", "ReachedMaxRestarts")]), Some(failed)),
            (json!([resumed, policy]), None),
            (json!([]), None),
        ] {
            let job_set = json!({
                "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"},
                "spec": {"replicatedJobs": [{"name": "node"}], "ttlSecondsAfterFinished": 60},
                "status": {"restarts": 1, "conditions": conditions, "terminalState": "Failed",
                    "replicatedJobsStatus": [{"name": "node", "failed": 1}]},
            });
            let reading = read(&job_set.to_string()).unwrap();
            assert_eq!(reading.end, expected, "{conditions}");
            assert_eq!(reading.own_ttl, Seconds::new(60));
        }
    }
}
