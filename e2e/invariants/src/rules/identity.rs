//! S2: identity; and the part of S9 that needs no list of RBAC rules.

use std::collections::HashSet;

use crate::{
    history::{Object, Request},
    index::{Index, Life},
    violation::{Rule, Violation},
};

/// The resources of which a history has every object, so that one it does not know never was.
const RECORDED: [&str; 4] = ["trainjobs", "jobsets", "configmaps", "secrets"];

/// The violation of `rule` by a request.
pub(crate) fn broken(rule: Rule, request: &Request, what: impl Into<String>) -> Violation {
    let Request { resource, namespace, name, .. } = request;
    let object = format!("{resource} {namespace}/{name}");
    Violation { rule, object, at: request.sent, what: what.into() }
}

/// Whether a request is about something that is promised; events are not.
pub(super) fn is_work(request: &Request) -> bool {
    request.is_write() && request.resource != "events"
}

/// S2, for what exists: the UID is in the request, whatever becomes of it; and where it took effect,
/// that UID is of a job that is ours or of the child of one.
pub(super) fn changes_name_what_is_ours(index: &Index<'_>) -> Vec<Violation> {
    let foreign = index.foreign_jobs();
    let changes = index.history.requests.iter().filter(|it| is_work(it) && it.verb != "create");
    changes
        .filter_map(|request| {
            let Some(uid) = request.uid.as_deref() else {
                return Some(broken(Rule::S2, request, "was to change without naming its UID"));
            };
            if !request.took_effect() || !RECORDED.contains(&&*request.resource) {
                return None;
            }
            let what = match index.life(uid) {
                None => format!("was changed under the UID {uid}, which nobody has"),
                Some(life) => misdirected(index, &foreign, request, life)?,
            };
            Some(broken(Rule::S2, request, what))
        })
        .collect()
}

fn misdirected(
    index: &Index<'_>,
    foreign: &HashSet<&str>,
    request: &Request,
    life: &Life<'_>,
) -> Option<String> {
    let object = &life.last().object;
    let place = (object.state.plural(), &object.namespace, &object.name);
    if place != (&*request.resource, &request.namespace, &request.name) {
        return Some(format!("was changed under the UID of {} {}", place.0, place.2));
    }
    let job = match object.job() {
        Some(_) => &object.uid,
        None => match &object.owner {
            Some(owner) if is_job(index, owner) => owner,
            _ => return Some("was changed, but belongs to no TrainJob".into()),
        },
    };
    let by_ttl = request.resource == "trainjobs"
        && request.verb == "delete"
        && index.history.terms.ttl_for_managed_elsewhere;
    let elsewhere = foreign.contains(job.as_str()) && !by_ttl;
    elsewhere.then(|| "was changed, but somebody else manages its TrainJob".into())
}

fn is_job(index: &Index<'_>, uid: &str) -> bool {
    index.life(uid).is_some_and(|life| life.last().object.job().is_some())
}

/// S2, for what is new: it has a TrainJob that is ours as its controller. Where the record of requests
/// has no bodies, what came to be tells.
pub(super) fn creations_name_their_job(index: &Index<'_>) -> Vec<Violation> {
    let foreign = index.foreign_jobs();
    let creations = index.history.requests.iter().filter(|it| is_work(it) && it.verb == "create");
    creations
        .filter_map(|request| {
            let made = index.made(request);
            let owner = request.owner.as_deref();
            let what = match owner.or_else(|| made?.owner.as_deref()) {
                // Without a body in the record, only what came to be can tell.
                None if made.is_none() => return None,
                None => "was created for no TrainJob",
                Some(uid) if foreign.contains(uid) => {
                    "was created, but somebody else manages its TrainJob"
                }
                Some(uid) if request.took_effect() && !is_job(index, uid) => {
                    "was created for a TrainJob that nobody knows"
                }
                Some(_) => return None,
            };
            Some(broken(Rule::S2, request, what))
        })
        .collect()
}

/// S9, without a list: no Secret is ever read, and a child is where its job is.
pub(super) fn permissions_that_nobody_has(index: &Index<'_>) -> Vec<Violation> {
    let what = |request: &Request| {
        if request.resource == "secrets" && !request.is_write() {
            return Some("was read");
        }
        let owner = request.owner.as_deref().and_then(|uid| index.life(uid))?;
        let Object { namespace, .. } = &owner.last().object;
        (*namespace != request.namespace).then_some("was created in another namespace than its job")
    };
    let all = index.history.requests.iter();
    all.filter_map(|request| Some(broken(Rule::S9, request, what(request)?))).collect()
}
