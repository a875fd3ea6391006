//! What a process that takes over need not look at.
//!
//! Whoever begins to work, at a start or when it comes to lead, knows nothing of what its predecessor has compared. To
//! compare a suspended JobSet with its TrainJob takes two reads, and there may be a hundred thousand of them. None of
//! them runs, so that it is enough to compare those that change, and each before it is resumed.

use crate::facts::{JobFacts, JobSetFacts, version_number};

/// Where a process took over: the newest versions that it knew then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TakeOver {
    /// Of TrainJobs; 0: none.
    pub jobs: u64,
    /// Of JobSets; 0: none.
    pub job_sets: u64,
}

/// When a suspended JobSet is compared with what its TrainJob and its snapshot ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Comparison {
    /// Now, unless it is known what it was made from.
    #[default]
    Due,
    /// When it is to be resumed: neither of the two has changed since this process took over.
    OnResume,
}

impl TakeOver {
    /// When the suspended JobSet of a job is compared with it.
    ///
    /// Versions are numbers that grow with each change of a kind (KEP-5504). One that is no number says nothing.
    #[must_use]
    pub fn comparison(self, job: &JobFacts, job_set: &JobSetFacts) -> Comparison {
        let is_older = |version: &str, newest: u64| (1..=newest).contains(&version_number(version));
        let is_unchanged = is_older(&job.resource_version, self.jobs)
            && is_older(&job_set.resource_version, self.job_sets);
        if is_unchanged { Comparison::OnResume } else { Comparison::Due }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn jobset_is_compared_once_it_or_its_job_has_changed_since_the_take_over() {
        let take_over = TakeOver { jobs: 100, job_sets: 200 };
        for (job, job_set, expected) in [
            ("100", "200", Comparison::OnResume),
            ("1", "1", Comparison::OnResume),
            ("101", "200", Comparison::Due),
            ("100", "201", Comparison::Due),
            // Nothing was known of either kind, or nothing says how old it is.
            ("", "200", Comparison::Due),
            ("100", "x", Comparison::Due),
        ] {
            let metadata = json!({"resourceVersion": job});
            let spec = json!({"runtimeRef": {"name": "r"}});
            let of_job = json!({"metadata": metadata, "spec": spec});
            let of_job_set = json!({"metadata": {"resourceVersion": job_set}});
            let (of_job, of_job_set) = (
                JobFacts::of(&serde_json::from_value(of_job).unwrap()),
                JobSetFacts::of(&serde_json::from_value(of_job_set).unwrap()),
            );
            assert_eq!(take_over.comparison(&of_job, &of_job_set), expected, "{job}, {job_set}");
            let unknown = TakeOver::default().comparison(&of_job, &of_job_set);
            assert_eq!(unknown, Comparison::Due, "{job}, {job_set}");
        }
    }
}
