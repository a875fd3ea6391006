//! When nothing is left to do for a job.

use crate::facts::{JobFacts, Outcome};

/// Whether nothing is left to do for a job, whenever it is looked at and whatever was read of it: it has finished by itself, is
/// being deleted with all that it owns, and there is neither a JobSet nor a PodGroup of its name. [`plan`](fn@crate::plan) has
/// no action for such a job but to repeat an event.
#[must_use]
pub fn is_over(job: &JobFacts, has_children: bool) -> bool {
    let by_itself = job.finished.is_some_and(|it| it.outcome != Outcome::DeadlineExceeded);
    by_itself && job.terminating && !has_children
}

#[cfg(test)]
mod tests {
    use trainjob_api::time::Timestamp;

    use super::*;
    use crate::{
        facts::{Finished, ObjectKey},
        now::Now,
        observed::{Observed, Reading, Readings, Settings},
        plan,
    };

    fn job(outcome: Option<Outcome>, terminating: bool, managed_elsewhere: bool) -> JobFacts {
        JobFacts {
            key: ObjectKey::new("ns", "tj"),
            uid: "U".into(),
            resource_version: "1".into(),
            created_at: Timestamp(1_000),
            terminating,
            managed_elsewhere,
            remote_copy: false,
            suspend: false,
            deadline: Some(60),
            ttl: Some(30),
            hold: None,
            out_of_range: None,
            finished: outcome.map(|outcome| Finished { at: Timestamp(2_000), outcome }),
            suspended: None,
            waiting: None,
            jobs_status: vec![],
        }
    }

    #[test]
    fn what_has_finished_by_itself_is_over_once_it_is_being_deleted_and_has_no_children() {
        for (outcome, terminating, has_children, expected) in [
            (Some(Outcome::Complete), true, false, true),
            (Some(Outcome::Failed), true, false, true),
            (Some(Outcome::Complete), false, false, false),
            (Some(Outcome::Complete), true, true, false),
            // It may not be released.
            (Some(Outcome::DeadlineExceeded), true, false, false),
            (None, true, false, false),
        ] {
            let is_over = is_over(&job(outcome, terminating, false), has_children);
            assert_eq!(is_over, expected, "{outcome:?}, {terminating}, {has_children}");
        }
    }

    #[test]
    fn nothing_is_planned_for_a_job_that_is_over() {
        let readings =
            [Readings::default(), Readings { pods: Reading::Absent, ..Readings::default() }];
        for outcome in [Outcome::Complete, Outcome::Failed] {
            for (managed_elsewhere, readings, now) in [false, true]
                .iter()
                .flat_map(|elsewhere| readings.iter().map(move |it| (elsewhere, it)))
                .flat_map(|(elsewhere, it)| [1_000, 9_000].map(|now| (*elsewhere, it, now)))
            {
                let job = job(Some(outcome), true, managed_elsewhere);
                assert!(is_over(&job, false));
                let settings = Settings { ttl_for_managed_elsewhere: true, ..Settings::default() };
                let plan = plan(&Observed::of(&job, readings, &settings), Now::at(Timestamp(now)));
                assert_eq!((&*plan.actions, plan.next), (&[][..], None), "{outcome:?} at {now}");
            }
        }
    }
}
