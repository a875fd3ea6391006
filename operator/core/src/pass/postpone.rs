//! What of a plan has to wait, although nothing is in its way.
//!
//! Counts that change quickly are written together. So is the text that says what still runs of a job, which may change
//! with every Pod that goes. And a check for Pods is not sent while the last one is under way.

use std::time::Duration;

use super::memory::JobMemory;
use crate::action::{Action, Plan, StatusWrite, Urgency, WaitingChange, WaitingWrite};

/// Counts of one job are written at most this often (`docs/semantics.md` §7).
const COUNTS_EVERY: Duration = Duration::from_millis(250);
/// A new text of why one job is not released is written at most this often.
const TEXT_EVERY: Duration = Duration::from_mins(1);
/// A check that has been under way for so long is lost. Every request has a shorter time limit.
const LOST_AFTER: Duration = Duration::from_mins(1);

/// Takes what has to wait out of the plan; says how long, if nothing else makes the job be planned again.
pub(super) fn postpone(plan: &mut Plan, memory: &JobMemory, now: Duration) -> Option<Duration> {
    let left = |last: Option<Duration>, every: Duration| {
        every.checked_sub(now.saturating_sub(last?)).filter(|left| !left.is_zero())
    };
    let waits = [
        (is_count as fn(&Action) -> bool, left(memory.counts_written, COUNTS_EVERY)),
        // The job is asked for its Pods again, and so planned again, all the time.
        (is_text, left(memory.text_written, TEXT_EVERY)),
        (is_pod_check, left(memory.pod_check, LOST_AFTER)),
    ];
    let postponed = waits.into_iter().filter_map(|(kind, left)| {
        let left = left?;
        let before = plan.actions.len();
        plan.actions.retain(|action| !kind(action));
        (plan.actions.len() < before).then_some(left)
    });
    postponed.min()
}

const fn is_count(action: &Action) -> bool {
    matches!(action, Action::WriteStatus(StatusWrite { urgency: Urgency::Coalesced, .. }))
}

const fn is_text(action: &Action) -> bool {
    matches!(
        action,
        Action::WriteWaiting(WaitingWrite {
            change: WaitingChange::Update { urgency: Urgency::Coalesced, .. },
            ..
        })
    )
}

const fn is_pod_check(action: &Action) -> bool {
    matches!(action, Action::CheckPods { .. })
}
