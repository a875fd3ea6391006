//! How long an object lives: what it or its policy says, within bounds (`docs/retention.md`, R30, steps 2 and 3).

use trainjob_api::time::Timestamp;

use super::due::{Due, Source};
use crate::{
    keep_last::{Candidate, Groups, KeptUntil},
    policies::Governed,
    policy::{Annotation, Delete, KeepLast, Lifetime, OwnTtl},
    seconds::Seconds,
    wish::TtlWish,
};

/// How much later than the kind's own controller the engine deletes an object by its own TTL, in seconds: it is there for
/// the case that the controller does not (`docs/retention.md`, R31).
const BACKSTOP: i64 = 60;

/// How long an object lives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    /// When it is due by that; `None`: never.
    pub(super) due: Option<Due>,
    /// Whether a rule says so, not the object itself.
    pub(super) by_rule: bool,
    /// Whether a rule would say it if the object belonged to a group.
    pub(super) ungrouped: bool,
    /// What is wrong with its annotation.
    pub(super) override_problem: Option<OverrideProblem>,
}

/// What is wrong with the TTL that an object asks for by annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideProblem {
    /// It cannot be read. The value is what it would be without, and the object is held as long as that may be.
    Unreadable,
    /// It is beyond the bounds.
    Clamped,
}

impl Value {
    /// How long an object of this start lives.
    pub(super) fn of(
        governed: &Governed<'_, '_>,
        candidate: Option<&Candidate>,
        groups: &Groups,
        start: Timestamp,
    ) -> Self {
        let bounded = |at, source| bounded(governed, (at, source), start);
        let after = |seconds: Seconds| Some(start.plus(seconds.get()));
        let wish = governed.object.wishes.ttl;
        let wish = wish.filter(|_| governed.policy.annotation == Annotation::Allowed);
        if let Some(TtlWish::Seconds(seconds)) = wish {
            let due = bounded(after(seconds), Source::Annotation);
            let clamped = due.map(|due| due.at) != after(seconds);
            let override_problem = clamped.then_some(OverrideProblem::Clamped);
            return Self { due, by_rule: false, ungrouped: false, override_problem };
        }
        let override_problem = wish.map(|_| OverrideProblem::Unreadable);
        if let Some(seconds) = own_ttl(governed) {
            let due = bounded(after(seconds), Source::OwnTtl);
            return Self { due, by_rule: false, ungrouped: false, override_problem };
        }
        let (at, source, ungrouped) = match (governed.decide.lifetime(), candidate) {
            (Lifetime::Ttl(seconds), _) => (after(*seconds), Source::Policy, false),
            (Lifetime::Never, _) => (None, Source::Policy, false),
            (Lifetime::KeepLast(_), None) => (None, Source::Policy, true),
            (Lifetime::KeepLast(rule), Some(candidate)) => {
                let (at, source) = kept_until(rule, candidate, groups, start);
                (at, source, false)
            }
        };
        Self { due: bounded(at, source), by_rule: true, ungrouped, override_problem }
    }
}

/// The kind's own TTL, if it counts. It is about this very object, so it says nothing about its owner.
fn own_ttl(governed: &Governed<'_, '_>) -> Option<Seconds> {
    let counts =
        governed.policy.own_ttl == OwnTtl::Respected && governed.decide.delete() == Delete::Object;
    governed.finish.own_ttl.filter(|_| counts)
}

/// When the kind's own controller deletes the object.
pub(super) fn own_ttl_ends(governed: &Governed<'_, '_>, start: Timestamp) -> Option<Timestamp> {
    governed.finish.own_ttl.map(|seconds| start.plus(seconds.get()))
}

/// When the engine would follow that controller.
pub(super) fn backstop(governed: &Governed<'_, '_>, start: Timestamp) -> Option<Timestamp> {
    own_ttl_ends(governed, start).map(|end| end.plus(BACKSTOP))
}

fn kept_until(
    rule: &KeepLast,
    candidate: &Candidate,
    groups: &Groups,
    start: Timestamp,
) -> (Option<Timestamp>, Source) {
    let group = groups.get(&candidate.group);
    match KeptUntil::of(rule, group, &candidate.rank, start) {
        KeptUntil { dispensable: Some(dispensable), too_old }
            if too_old.is_none_or(|too_old| dispensable <= too_old) =>
        {
            (Some(dispensable), Source::Count)
        }
        KeptUntil { too_old, .. } => (too_old, Source::Policy),
    }
}

/// A time brought within the bounds. *Never* is brought to the maximum; without one it stays.
fn bounded(
    governed: &Governed<'_, '_>,
    (at, source): (Option<Timestamp>, Source),
    start: Timestamp,
) -> Option<Due> {
    let earliest = start.plus(governed.bounds.minimum().get());
    let latest = governed.bounds.maximum().map(|maximum| start.plus(maximum.get()));
    let backstop = if source == Source::OwnTtl { BACKSTOP } else { 0 };
    let at = at.map(|at| at.max(earliest).plus(backstop));
    let due = |at, source| Some(Due { at, source, delay: None });
    match (at, latest) {
        (Some(at), Some(latest)) if at > latest => due(latest, Source::Maximum),
        (None, Some(latest)) => due(latest, Source::Maximum),
        (Some(at), _) => due(at, source),
        (None, None) => None,
    }
}
