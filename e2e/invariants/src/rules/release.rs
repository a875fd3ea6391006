//! S7: durable before destroy.

use crate::{
    history::{Change, Request, State},
    index::{Index, Life},
    rules::identity::broken,
    violation::{Rule, Violation},
};

/// S7. What calls for the deletion of a JobSet is stored when the deletion takes effect: its job's
/// deadline has failed it, or the JobSet came after its job's end. Then no crash can lose the goal.
/// A JobSet that never ran may go at any time, to be made anew: by its version, so that it cannot have
/// begun meanwhile.
pub(super) fn durable_before_destroy(index: &Index<'_>) -> Vec<Violation> {
    let deletions = index.history.requests.iter().filter(|request| {
        request.verb == "delete" && request.resource == "jobsets" && request.took_effect()
    });
    deletions
        .filter_map(|request| {
            let job_set = index.life(request.uid.as_deref()?)?;
            let revision = effect(job_set, request)?;
            if request.version.is_some() && never_ran(job_set, revision) {
                return None;
            }
            let job = index.life(job_set.last().object.owner.as_deref()?)?;
            let stored = job.before(revision)?;
            let justified = stored
                .object
                .terminal()
                .is_some_and(|end| end.is_deadline() || job_set.first().object.created > end.since);
            (!justified).then(|| {
                broken(Rule::S7, request, "was deleted before the end that calls for it was stored")
            })
        })
        .collect()
}

fn never_ran(job_set: &Life<'_>, until: u64) -> bool {
    let suspended = |change: &Change| match &change.object.state {
        State::JobSet(state) => state.suspend,
        _ => false,
    };
    let mut before = job_set.versions.iter().filter(|change| change.revision < until);
    before.all(|change| suspended(change))
}

/// The revision with which the deletion took effect; `None` where somebody else's did before.
fn effect(job_set: &Life<'_>, request: &Request) -> Option<u64> {
    let began = job_set.deletion().filter(|change| change.at >= request.sent)?;
    Some(request.answer.version.unwrap_or(began.revision))
}
