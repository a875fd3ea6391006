//! S1: no early delete.

use trainjob_api::time::Timestamp;

use crate::{
    history::{Object, Request},
    index::Index,
    violation::{Rule, Violation},
};

/// S1. The version named in the request is what was decided on, and the API server lets the request
/// take effect on no other. So whatever it says must call for the deletion at the instant of sending,
/// by the clock of whoever sent it.
pub(super) fn no_early_delete(index: &Index<'_>) -> Vec<Violation> {
    let deletions = index.history.requests.iter().filter(|request| is_deletion(request));
    deletions
        .filter_map(|request| {
            let life = index.life(request.uid.as_deref()?)?;
            let decided_on = &life.version(request.version?)?.object;
            let what = objection(index, decided_on, Timestamp(request.sent.div_euclid(1_000)))?;
            Some(Index::broken(Rule::S1, decided_on, request.sent, what))
        })
        .collect()
}

fn is_deletion(request: &Request) -> bool {
    request.verb == "delete" && request.resource == "trainjobs" && request.took_effect()
}

/// What speaks against deleting a job that says this at `now`.
fn objection(index: &Index<'_>, object: &Object, now: Timestamp) -> Option<String> {
    let job = object.job()?;
    if object.terminal().is_none() {
        return Some("was deleted, unfinished".into());
    }
    let Some(due) = index.ttl_due(object) else { return Some("was deleted without a TTL".into()) };
    if !index.ttl_applies(job) {
        return Some("was deleted, which is for somebody else to do".into());
    }
    if object.deleting.is_some() {
        return Some("was deleted a second time".into());
    }
    (now < due).then(|| format!("was deleted {} s before it was due", due.since(now)))
}
