//! Which jobs need nothing any more.

use crate::facts::{JobFacts, Outcome};

/// Whether nothing is left to do for a job, whenever it is looked at and whatever was read of it: it has finished by itself, is
/// being deleted with all that it owns, and there is neither a JobSet nor a PodGroup of its name. [`plan`](fn@crate::plan) has
/// no action for such a job but to repeat an event.
#[must_use]
pub fn needs_nothing(job: &JobFacts, has_children: bool) -> bool {
    let by_itself = job.finished.is_some_and(|it| it.outcome != Outcome::DeadlineExceeded);
    by_itself && job.terminating && !has_children
}

#[cfg(test)]
mod tests {
    use trainjob_api::time::Timestamp;

    use super::*;
    use crate::{
        facts::Finished,
        now::Now,
        observed::{Observed, Reading, Readings, Settings},
        plan,
    };

    fn job(outcome: Option<Outcome>, terminating: bool, managed_elsewhere: bool) -> JobFacts {
        let finished = outcome.map(|outcome| Finished { at: Timestamp(2_000), outcome });
        JobFacts { terminating, managed_elsewhere, finished, ..JobFacts::unfinished() }
    }

    #[test]
    fn what_has_finished_by_itself_needs_nothing_once_it_is_being_deleted_and_has_no_children() {
        for (outcome, terminating, has_children, expected) in [
            (Some(Outcome::Complete), true, false, true),
            (Some(Outcome::Failed), true, false, true),
            (Some(Outcome::Complete), false, false, false),
            (Some(Outcome::Complete), true, true, false),
            // It may not be released.
            (Some(Outcome::DeadlineExceeded), true, false, false),
            (None, true, false, false),
        ] {
            let found = needs_nothing(&job(outcome, terminating, false), has_children);
            assert_eq!(found, expected, "{outcome:?}, {terminating}, {has_children}");
        }
    }

    #[test]
    fn nothing_is_planned_for_a_job_that_needs_nothing() {
        let readings =
            [Readings::default(), Readings { pods: Reading::Absent, ..Readings::default() }];
        for outcome in [Outcome::Complete, Outcome::Failed] {
            for (managed_elsewhere, readings, now) in [false, true]
                .iter()
                .flat_map(|elsewhere| readings.iter().map(move |it| (elsewhere, it)))
                .flat_map(|(elsewhere, it)| [1_000, 9_000].map(|now| (*elsewhere, it, now)))
            {
                let job = job(Some(outcome), true, managed_elsewhere);
                assert!(needs_nothing(&job, false));
                let settings = Settings { ttl_for_managed_elsewhere: true, ..Settings::default() };
                let plan = plan(&Observed::of(&job, readings, &settings), Now::at(Timestamp(now)));
                assert_eq!((&*plan.actions, plan.next), (&[][..], None), "{outcome:?} at {now}");
            }
        }
    }
}
