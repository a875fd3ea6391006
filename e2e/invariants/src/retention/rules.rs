//! The invariants, each a pure function of the arranged history.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap, HashSet},
};

use super::{
    picture::{Deciders, Picture, Verdict},
    terms::Terms,
    violation::{Invariant, Violation},
};
use crate::{
    history::{Change, Millis, Object, Request},
    index::{Index, Life, millis},
};

/// How long the engine waits with what an edit has made due (R42), and a little.
const UNEXPECTED: Millis = 125_000;

/// A run, and how it is judged.
pub(super) struct Run<'r, 'a> {
    index: &'r Index<'a>,
    deciders: Deciders<'r, 'a>,
    /// When anything changed, in order.
    changed_at: Vec<Millis>,
    terms: &'r Terms,
}

/// One invariant, or some that are looked at together.
type Check = fn(&Run<'_, '_>) -> Vec<Violation>;

/// All of them.
pub(super) const CHECKS: &[Check] =
    &[only_deletes, deletions_are_right, once, few, what_is_due_goes];

impl<'r, 'a> Run<'r, 'a> {
    /// Of a history.
    pub(super) fn new(index: &'r Index<'a>, terms: &'r Terms) -> Self {
        let changes = index.history.changes.iter().map(|change| change.at);
        let changed_at: BTreeSet<_> = changes.collect();
        let changed_at = changed_at.into_iter().collect();
        Self { index, deciders: Deciders::of(index), changed_at, terms }
    }

    fn picture(&self, at: Millis) -> Picture<'_, 'a> {
        Picture { index: self.index, deciders: &self.deciders, terms: self.terms, at }
    }

    /// The plurals of the kinds that policies are about.
    fn resources(&self) -> BTreeSet<&'a str> {
        let objects = self.index.lives.iter().map(|life| &life.first().object);
        objects.filter(|it| it.target().is_some()).map(|it| it.state.plural()).collect()
    }

    /// The requests that are about objects of these kinds.
    fn requests(&self) -> impl Iterator<Item = &'a Request> {
        let resources = self.resources();
        let about = move |it: &&Request| resources.contains(it.resource.as_str());
        self.index.history.requests.iter().filter(about)
    }

    fn deletions(&self) -> impl Iterator<Item = &'a Request> {
        self.requests().filter(|request| request.verb == "delete")
    }
}

fn broken(invariant: Invariant, request: &Request, what: String) -> Violation {
    let Request { resource, namespace, name, sent, .. } = request;
    Violation { invariant, object: format!("{resource} {namespace}/{name}"), at: *sent, what }
}

fn only_deletes(run: &Run<'_, '_>) -> Vec<Violation> {
    let other = run.requests().filter(|it| it.is_write() && it.verb != "delete");
    other
        .map(|request| {
            let what = format!("was to be changed by {} {}", request.verb, request.subresource);
            broken(Invariant::OnlyDeletes, request, what)
        })
        .collect()
}

fn deletions_are_right(run: &Run<'_, '_>) -> Vec<Violation> {
    run.deletions().filter_map(|request| wrong(run, request)).collect()
}

/// What is wrong with a deletion, if anything is.
fn wrong(run: &Run<'_, '_>, request: &Request) -> Option<Violation> {
    let unnamed = |what: &str| Some(broken(Invariant::Preconditions, request, what.to_owned()));
    let (Some(uid), Some(version)) = (&request.uid, request.version) else {
        return unnamed("was to be deleted without UID and version");
    };
    let Some(change) = run.index.life(uid).and_then(|life| life.version(version)) else {
        return unnamed("was to be deleted in a version that it never had");
    };
    let is_paused = |(from, until): &(Millis, Millis)| (*from..*until).contains(&request.sent);
    if run.terms.pauses.iter().any(is_paused) {
        let what = "was to be deleted while nothing may be".to_owned();
        return Some(broken(Invariant::Held, request, what));
    }
    let mut problem = None;
    for at in instants(run, request.sent) {
        let picture = run.picture(at);
        if goes_instead(&picture, uid, request) {
            return None;
        }
        match allowed(&picture.verdict(&change.object), request) {
            Ok(()) => return None,
            Err((invariant, what)) => problem = Some(broken(invariant, request, what)),
        }
    }
    problem
}

/// Whether an object that it controls has this one deleted instead (R25).
fn goes_instead(picture: &Picture<'_, '_>, uid: &str, request: &Request) -> bool {
    let children = picture.index.children(uid).filter_map(|life| life.at(picture.at));
    let mut verdicts = children.map(|child| picture.verdict(&child.object));
    verdicts.any(|it| matches!(it, Verdict::OwnerDue(due) if millis(due) <= request.sent))
}

/// Whether a verdict allows a deletion.
fn allowed(verdict: &Verdict, request: &Request) -> Result<(), (Invariant, String)> {
    match verdict {
        Verdict::Due(due) if millis(*due) <= request.sent => Ok(()),
        Verdict::Due(due) => {
            let early = millis(*due).saturating_sub(request.sent);
            Err((Invariant::Due, format!("was to be deleted {early} ms before it was due")))
        }
        Verdict::OwnerDue(_) => {
            Err((Invariant::Due, "was to be deleted instead of its owner".to_owned()))
        }
        Verdict::Kept(why) => Err((Invariant::Due, format!("{why} and was to be deleted"))),
        Verdict::Exempt(why) => Err((Invariant::Exempt, format!("{why} and was to be deleted"))),
        Verdict::Ungoverned => {
            let what = "was to be deleted, and no policy that enforces governs it".to_owned();
            Err((Invariant::Governed, what))
        }
        Verdict::Tripped => {
            Err((Invariant::Held, "was to be deleted where its policy has tripped".to_owned()))
        }
    }
}

/// The instants of whose state the engine may have decided on a request that was sent then: each at which anything
/// changed within the time that an event takes. That is as long for whoever keeps the record, so what was noted after the
/// request may have been stored before it.
fn instants(run: &Run<'_, '_>, sent: Millis) -> BTreeSet<Millis> {
    let from = sent.saturating_sub(run.terms.staleness);
    let until = sent.saturating_add(run.terms.staleness);
    let before = run.changed_at.partition_point(|at| *at < from);
    let changes = run.changed_at.iter().skip(before).copied();
    changes.take_while(|at| *at <= until).chain([from, sent]).collect()
}

fn once(run: &Run<'_, '_>) -> Vec<Violation> {
    // A process that has had no answer, and one that has just started, may not know.
    let mut accepted: HashSet<(u32, &str)> = HashSet::new();
    let mut found = Vec::new();
    for request in run.deletions() {
        let Some(uid) = request.uid.as_deref() else { continue };
        if accepted.contains(&(request.process, uid)) {
            let what = "was to be deleted again".to_owned();
            found.push(broken(Invariant::Once, request, what));
        }
        if request.answer.code.is_some_and(|code| (200..300).contains(&code)) {
            accepted.insert((request.process, uid));
        }
    }
    found
}

fn few(run: &Run<'_, '_>) -> Vec<Violation> {
    let mut under_way: HashMap<u32, BinaryHeap<Reverse<Millis>>> = HashMap::new();
    let mut found = Vec::new();
    for request in run.deletions() {
        let ends = under_way.entry(request.process).or_default();
        while ends.peek().is_some_and(|Reverse(end)| *end <= request.sent) {
            ends.pop();
        }
        ends.push(Reverse(request.ended));
        if ends.len() > run.terms.in_flight {
            let what = format!("was to be deleted beside {} others", run.terms.in_flight);
            found.push(broken(Invariant::Few, request, what));
            ends.clear();
        }
    }
    found
}

fn what_is_due_goes(run: &Run<'_, '_>) -> Vec<Violation> {
    let targets = run.index.lives.iter().filter(|life| life.end().is_none());
    targets.filter_map(|life| stays(run, life)).collect()
}

/// An object that should be gone by the end, and is not.
fn stays(run: &Run<'_, '_>, life: &Life<'_>) -> Option<Violation> {
    let last = life.last();
    let end = run.index.history.end;
    let (Verdict::Due(due) | Verdict::OwnerDue(due)) = run.picture(end).verdict(&last.object)
    else {
        return None;
    };
    if last.object.is_held() {
        return None;
    }
    let waits = if made_due_by_an_edit(last, life, millis(due)) { UNEXPECTED } else { 0 };
    let edited = run.index.lives.iter().filter_map(last_edit).max().unwrap_or(0);
    let pauses = run.terms.pauses.iter().map(|(_, until)| *until).max().unwrap_or(0);
    let since = [millis(due), last.at, edited, pauses].into_iter().max().unwrap_or(0);
    let gone_by = since.saturating_add(waits).saturating_add(run.terms.allowance);
    (gone_by < end).then(|| {
        let Object { namespace, name, state, .. } = &last.object;
        let late = end.saturating_sub(millis(due));
        Violation {
            invariant: Invariant::Absence,
            object: format!("{} {namespace}/{name}", state.plural()),
            at: end,
            what: format!("is there {late} ms after it was due"),
        }
    })
}

/// When a policy was edited last, or has tripped or stopped to. Most writes of its status are neither.
fn last_edit(life: &Life<'_>) -> Option<Millis> {
    let decides =
        |change: &Change| Some((change.object.generation, change.object.policy()?.trip.clone()));
    let edits = life.versions.windows(2).filter_map(|pair| match pair {
        [before, after] if decides(before) != decides(after) => Some(after.at),
        _ => None,
    });
    life.first().object.policy()?;
    edits.chain([life.first().at]).max()
}

/// Whether an edit of the object, and not time or its end, has made it due.
fn made_due_by_an_edit(last: &Change, life: &Life<'_>, due: Millis) -> bool {
    let had_ended =
        life.before(last.revision).is_some_and(|before| before.object.start().is_some());
    had_ended && last.at > due
}
