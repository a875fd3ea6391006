//! Jobs for which there is nothing to do, as their facts alone say.

use crate::{
    facts::{JobFacts, JobSetFacts},
    mark::Mode,
    observed::Observed,
    take_over::Comparison,
};

/// Whether nothing but counts is to be written for an unfinished job before time passes or something changes. Where
/// that takes more than facts, the answer is no.
pub(crate) fn is_settled(observed: &Observed<'_>, own: Option<&JobSetFacts>) -> bool {
    let job = observed.job;
    let says_suspended = job.suspended.is_some_and(|condition| condition.holds);
    // Whoever waits goes on as soon as it can.
    let is_right = says_suspended == job.suspend && job.waiting.is_none();
    let has_ended = own.map_or(observed.readings.ended.is_some(), |own| own.ended.is_some());
    let is_done = if job.terminating {
        own.is_none_or(|own| !must_stop(job, own))
    } else {
        own.is_some_and(|own| follows(observed, own))
    };
    is_right && !has_ended && is_done
}

/// Whether a JobSet runs on though its job is suspended.
pub(super) const fn must_stop(job: &JobFacts, own: &JobSetFacts) -> bool {
    job.suspend && !own.suspended && own.terminating_since.is_none()
}

fn follows(observed: &Observed<'_>, own: &JobSetFacts) -> bool {
    let is_there = own.terminating_since.is_none() && own.suspended == observed.job.suspend;
    is_there && (!own.suspended || can_wait(observed, own))
}

/// Whether it is enough to look at a suspended JobSet when it is resumed, because nobody has changed it or its job since the
/// process took over.
pub(super) fn can_wait(observed: &Observed<'_>, job_set: &JobSetFacts) -> bool {
    let job = observed.job;
    // What the status says may not hold any more.
    let is_open = job.waiting.is_some();
    let to_be_unmarked = job_set.holds_pods && observed.accounting.mode == Mode::Off;
    let is_unchanged = observed.comparison == Comparison::OnResume;
    job.suspend && is_unchanged && !is_open && !to_be_unmarked
}
