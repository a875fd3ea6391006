//! Which jobs wait for the list of the running Pods of all JobSets when a process takes over, and for how long.

use trainjob_api::time::Timestamp;

use crate::{
    facts::{JobFacts, Outcome},
    observed::Reading,
    running_pods::RunningPods,
};

/// Seconds after which the end of a job is old. Its Pods are gone, unless something is wrong with a node.
const OLD_AFTER: i64 = 600;

/// How a job is known to be released that its deadline failed and that has no JobSet. One list of the running Pods of all
/// JobSets answers for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodListUse {
    /// The job has no use for it.
    None,
    /// The job waits a moment for it, and then asks for its own Pods: some may still run, and somebody waits for that.
    Moment,
    /// The job waits until it has ended.
    Patient,
}

impl PodListUse {
    /// What a process that takes over at `now` does about a job, of whose Pods it knows this.
    #[must_use]
    pub fn of(
        job: &JobFacts,
        has_job_set: bool,
        pods: &Reading<RunningPods>,
        now: Timestamp,
    ) -> Self {
        let Some(finished) = job.finished else { return Self::None };
        let by_deadline = finished.outcome == Outcome::DeadlineExceeded;
        // While there is a JobSet, what is seen of Pods now says nothing about when it is gone.
        let is_open = !has_job_set && *pods == Reading::NotRead;
        if !by_deadline || !is_open || job.managed_elsewhere {
            return Self::None;
        }
        if finished.at.plus(OLD_AFTER) <= now { Self::Patient } else { Self::Moment }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A job that ended so at 1970-01-01T00:16:40Z.
    fn ended(kind: &str, reason: &str, managed_by: Option<&str>) -> JobFacts {
        let condition = json!({"type": kind, "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "1970-01-01T00:16:40Z"});
        let job = json!({
            "metadata": {"uid": "U"}, "status": {"conditions": [condition]},
            "spec": {"runtimeRef": {"name": "r"}, "managedBy": managed_by},
        });
        JobFacts::of(&serde_json::from_value(job).unwrap())
    }

    #[test]
    fn only_unreleased_job_without_a_jobset_waits_for_the_list_and_an_old_one_until_its_end() {
        let by_deadline = || ended("Failed", "DeadlineExceeded", None);
        let elsewhere = ended("Failed", "DeadlineExceeded", Some("example.com/other"));
        let (unread, none) = (Reading::NotRead, Reading::Absent);
        for (what, job, has_job_set, pods, now, expected) in [
            ("just ended", by_deadline(), false, &unread, 1_599, PodListUse::Moment),
            ("old", by_deadline(), false, &unread, 1_600, PodListUse::Patient),
            ("its JobSet is there", by_deadline(), true, &unread, 1_600, PodListUse::None),
            ("known", by_deadline(), false, &none, 1_600, PodListUse::None),
            ("somebody else's", elsewhere, false, &unread, 1_600, PodListUse::None),
            ("complete", ended("Complete", "R", None), false, &unread, 1_600, PodListUse::None),
            (
                "failed",
                ended("Failed", "FailedJobs", None),
                false,
                &unread,
                1_600,
                PodListUse::None,
            ),
        ] {
            assert_eq!(PodListUse::of(&job, has_job_set, pods, Timestamp(now)), expected, "{what}");
        }
        let unfinished = JobFacts { finished: None, ..by_deadline() };
        let of = PodListUse::of(&unfinished, false, &unread, Timestamp(1_600));
        assert_eq!(of, PodListUse::None, "unfinished");
    }
}
