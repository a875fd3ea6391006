//! L3: quiescence.

use std::collections::HashMap;

use crate::{
    history::{Millis, Request},
    index::{Index, Life, millis},
    rules::identity::{broken, is_work},
    violation::{Rule, Violation},
};

/// L3. What happens to a job, other than by the operator's own writes, calls for a few more of them;
/// an allowance after the last such thing there is nothing left to write. Creations are not looked at:
/// what they wait for, such as a runtime, may be no part of the record.
pub(super) fn what_is_settled_is_not_written(index: &Index<'_>) -> Vec<Violation> {
    let mut last_writes: HashMap<&str, &Request> = HashMap::new();
    let mut last_failures: HashMap<(&str, &str), Millis> = HashMap::new();
    for request in index.history.requests.iter().filter(|request| is_work(request)) {
        if request.answer.code.is_none_or(|code| code >= 400) {
            last_failures.insert((&request.namespace, &request.name), request.ended);
        } else if let Some(job) = written(index, request) {
            last_writes.insert(job, request);
        }
    }
    let started = index.starts().max().unwrap_or_default();
    let mut found: Vec<Violation> = last_writes
        .into_iter()
        .filter_map(|(uid, write)| {
            let life = index.life(uid)?;
            let object = &life.last().object;
            let failed = last_failures.get(&(&object.namespace, &object.name)).copied();
            let settled = settled(index, life).max(started).max(failed.unwrap_or_default());
            (write.sent > settled + index.history.terms.allowance).then(|| {
                let after = write.sent - settled;
                let what =
                    format!("was written {after} ms after the last thing that called for it");
                broken(Rule::L3, write, what)
            })
        })
        .collect();
    found.sort_by_key(|violation| violation.at);
    found
}

/// UID of the job that this write is for, if it changes something that is there.
fn written<'a>(index: &Index<'a>, request: &Request) -> Option<&'a str> {
    if request.verb == "create" || !request.took_effect() {
        return None;
    }
    let object = &index.life(request.uid.as_deref()?)?.last().object;
    if object.job().is_some() { Some(&object.uid) } else { object.owner.as_deref() }
}

/// The last thing that happened to a job but for the operator's own writes: somebody else's change of
/// it or of what belongs to it, or an instant at which something was due.
fn settled(index: &Index<'_>, life: &Life<'_>) -> Millis {
    let object = &life.last().object;
    let mut last = others(index, life);
    for child in index.namesakes(object).chain(index.children(&object.uid)) {
        last = last.max(others(index, child));
        for pod in index.children(&child.last().object.uid) {
            last = last.max(others(index, pod));
        }
    }
    let due = life.versions.iter().flat_map(|it| {
        [index.ttl_due(&it.object), index.deadline(&it.object)].into_iter().flatten().map(millis)
    });
    let due = due.filter(|due| *due <= index.history.end).max();
    last.max(due.unwrap_or_default())
}

fn others(index: &Index<'_>, life: &Life<'_>) -> Millis {
    let by_others = life.versions.iter().filter(|change| index.cause(change).is_none());
    by_others.map(|change| change.at).max().unwrap_or_default()
}
