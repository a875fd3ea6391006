//! What policies in Audit have to know of other objects, so that they show what they would do (`docs/retention.md`, R20).
//!
//! They ask as they would in Enforce: about an owner (R24, R25) and a release (R13), once the object is due. An owner
//! that has ended stays so, and so does a release: they are asked for once. While the answer keeps the object, the question is
//! asked again in its time.

use std::time::Duration;

use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    keep_last::Groups,
    plan::{Act, Answers, Plan},
    policies::{Governed, NamespacePolicies},
};

use super::{
    object::Object,
    rights::Rights,
    step::{Step, Wait},
    without_deletion::without_deletion,
};

/// The plans of the policies that audit an object and may have to ask about others.
pub(super) fn plans<'p, 'o>(
    policies: &'p NamespacePolicies,
    object: &'o Object,
    answers: Answers,
    groups: &Groups,
    now: Timestamp,
) -> impl Iterator<Item = (Governed<'p, 'o>, Plan<'p>)> {
    let may_ask = |governed: &Governed<'_, '_>| {
        governed.object.controller().is_some() || governed.finish.guards.release
    };
    policies.audited(&object.facts).filter(may_ask).map(move |governed| {
        let plan = governed.plan(&answers, groups, now);
        (governed, plan)
    })
}

/// Whether a plan asks something.
pub(super) const fn asks(plan: &Plan<'_>) -> bool {
    matches!(plan.act, Act::Ask(_))
}

/// What has to be asked about an object now for the policies that audit it, or how long nothing has to be. `monotonic` is a
/// time that nobody sets.
pub(super) fn step(
    policies: &NamespacePolicies,
    object: &Object,
    groups: &Groups,
    rights: &Rights,
    (now, monotonic): (Timestamp, Duration),
) -> Step {
    let again = object.asks_again_in(monotonic);
    let mut wait = Wait::default();
    for (governed, plan) in plans(policies, object, object.audited_answers(monotonic), groups, now)
    {
        let is_paused = rights.is_paused(&governed.policy.uid);
        match without_deletion(&governed, &plan, again, is_paused) {
            question @ (Step::AskOwner(_) | Step::AskRelease(_)) => return question,
            Step::Wait(other) => wait = wait.or_before(other),
            // Nothing is deleted for a policy in Audit.
            Step::Gone | Step::Idle | Step::Line | Step::DeletePods(_) | Step::Delete(_) => {}
        }
    }
    Step::Wait(wait)
}
