//! What is done about an object that is not deleted now: something is asked about it, or nothing happens for a while.

use std::time::Duration;

use trainjob_retention_core::{
    plan::{Act, Plan, Question},
    policies::Governed,
};

use super::step::{Step, Wait};

/// How long it is until another look at an object about which nothing is asked because its policy lacks a right.
const WHILE_PAUSED: Duration = Duration::from_mins(1);

/// What is done about an object that is not deleted now. `asks_again` is how long an answer holds that keeps it.
pub(super) fn without_deletion(
    governed: &Governed<'_, '_>,
    plan: &Plan<'_>,
    asks_again: Option<Duration>,
    is_paused: bool,
) -> Step {
    match plan.act {
        Act::Ask(_) if is_paused => wait(plan, Some(WHILE_PAUSED)),
        // One whose policy pauses is queued again when the right is given.
        Act::DeletePods | Act::DeleteObject | Act::DeleteOwner => Step::Idle,
        Act::Ask(Question::Owner) => ask_owner(governed),
        Act::Ask(Question::Release) => Step::AskRelease(governed.object.uid.clone()),
        Act::Nothing => wait(plan, asks_again),
    }
}

fn wait(plan: &Plan<'_>, longest: Option<Duration>) -> Step {
    Step::Wait(Wait { until: plan.next, longest })
}

fn ask_owner(governed: &Governed<'_, '_>) -> Step {
    let owner = governed.object.controller().cloned();
    owner.map_or_else(|| Step::Wait(Wait::default()), Step::AskOwner)
}
