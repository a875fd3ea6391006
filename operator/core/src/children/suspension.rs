//! Suspending a JobSet, and resuming it.

use super::settled::must_stop;
use crate::{
    action::Action,
    facts::{JobFacts, JobSetFacts},
};

/// The suspension of a JobSet that runs on though its job is suspended.
pub(crate) fn stop(job: &JobFacts, own: Option<&JobSetFacts>) -> Option<Action> {
    own.filter(|own| must_stop(job, own)).map(|own| suspend(own, true))
}

/// Suspends or resumes a JobSet.
pub(super) fn suspend(job_set: &JobSetFacts, suspend: bool) -> Action {
    Action::SuspendJobSet {
        uid: job_set.uid.clone(),
        resource_version: job_set.resource_version.clone(),
        suspend,
    }
}
