//! S10: bounded pressure.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
};

use crate::{
    history::{Millis, Request},
    index::{Index, Life},
    rules::identity::{broken, is_work},
    violation::{Rule, Violation},
};

/// How many failures about one object a growing wait allows in [`WINDOW`]: waits that begin with
/// a twentieth of a second and double allow five.
const FAILURES: usize = 8;
const WINDOW: Millis = 1_000;

/// S10: each process has at most so many requests under way, not counting what it asks for itself.
pub(super) fn few_at_a_time(index: &Index<'_>) -> Vec<Violation> {
    let mut under_way: HashMap<u32, BinaryHeap<Reverse<Millis>>> = HashMap::new();
    let most = index.history.terms.in_flight;
    let mut found = Vec::new();
    for request in index.history.requests.iter().filter(|it| has_a_place(it)) {
        let ends = under_way.entry(request.process).or_default();
        while ends.peek().is_some_and(|Reverse(end)| *end <= request.sent) {
            ends.pop();
        }
        if request.ended > request.sent {
            ends.push(Reverse(request.ended));
        }
        if ends.len() > most {
            let what = format!("was asked for while {most} requests were under way");
            found.push(broken(Rule::S10, request, what));
            ends.clear();
        }
    }
    found
}

/// Whether a request is one of those that are limited. What a process asks for itself is not: watches and
/// the lists that begin them, of which there is one for each kind; its Lease, and the API server's time
/// (about no kind), of which one at a time is under way. Events have a limit of their own.
fn has_a_place(request: &Request) -> bool {
    let begins_a_watch = request.verb == "list" && request.namespace.is_empty();
    let is_its_own = matches!(request.resource.as_str(), "" | "leases" | "events");
    request.verb != "watch" && !begins_a_watch && !is_its_own
}

/// Somebody was told to wait.
struct Wait<'a> {
    told: Millis,
    free: Millis,
    /// The TrainJob that it was about, as far as that is known.
    job: Option<&'a str>,
}

/// S10: who was told to wait waits, with everything about that object. A successor of its name is another.
pub(super) fn retry_after_is_honoured(index: &Index<'_>) -> Vec<Violation> {
    let mut until: HashMap<(u32, &str, &str), Wait<'_>> = HashMap::new();
    let mut found = Vec::new();
    for request in index.history.requests.iter().filter(|request| !request.name.is_empty()) {
        let object = (request.process, request.namespace.as_str(), request.name.as_str());
        let wait = until.get(&object).filter(|wait| {
            (wait.told..wait.free).contains(&request.sent) && !is_over(index, wait, request)
        });
        if let Some(Wait { free, .. }) = wait {
            let what = format!("was asked for {} ms before the wait was over", free - request.sent);
            found.push(broken(Rule::S10, request, what));
        }
        if let Some(seconds) = request.answer.retry_after {
            let free = request.ended + i64::from(seconds) * 1_000;
            // Of waits that overlap, the longest counts.
            if until.get(&object).is_none_or(|wait| free > wait.free) {
                let job = index.job_of(request);
                until.insert(object, Wait { told: request.ended, free, job });
            }
        }
    }
    found
}

/// Whether the job that was to wait is gone.
fn is_over<'a>(index: &Index<'a>, wait: &Wait<'_>, request: &'a Request) -> bool {
    let Some(job) = wait.job else { return false };
    let is_gone = || {
        let end = index.life(job).and_then(Life::end);
        end.is_some_and(|end| end.at <= request.sent)
    };
    index.job_of(request).map_or_else(is_gone, |asks| asks != job)
}

/// S10: failures about one object are spaced by waits. A conflict after which another version is tried
/// is progress, not repetition.
pub(super) fn no_hot_loop(index: &Index<'_>) -> Vec<Violation> {
    type Target<'a> = (u32, &'a str, &'a str, &'a str, &'a str);
    let mut failures: HashMap<Target<'_>, (VecDeque<Millis>, Option<u64>)> = HashMap::new();
    let mut found = Vec::new();
    for request in index.history.requests.iter().filter(|request| failed(request)) {
        let Request { process, namespace, resource, name, verb, .. } = request;
        let target = (*process, &**namespace, &**resource, &**name, &**verb);
        let (times, version) = failures.entry(target).or_default();
        if request.version.is_some() && request.version != *version {
            times.clear();
            *version = request.version;
        }
        while times.front().is_some_and(|first| *first <= request.sent - WINDOW) {
            times.pop_front();
        }
        times.push_back(request.sent);
        if times.len() > FAILURES {
            let what = format!("was asked for in vain {} times in a second", times.len());
            found.push(broken(Rule::S10, request, what));
            times.clear();
        }
    }
    found
}

fn failed(request: &Request) -> bool {
    !request.name.is_empty() && request.answer.code.is_none_or(|code| code >= 400)
}

/// S10: what is written differs from what was there.
pub(super) fn no_write_without_change(index: &Index<'_>) -> Vec<Violation> {
    let without_change = index.history.requests.iter().filter(|request| {
        let same = request.version.is_some() && request.answer.version == request.version;
        is_work(request) && request.verb != "delete" && request.took_effect() && same
    });
    without_change
        .map(|request| broken(Rule::S10, request, "was written, and nothing changed"))
        .collect()
}
