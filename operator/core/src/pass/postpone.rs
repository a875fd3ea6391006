//! What of a plan has to wait, although nothing is in its way.
//!
//! Counts that change quickly are written together. So is the text that says what still runs of a job, which may change
//! with every Pod that goes. And a check for Pods is not sent while the last one is under way.

use std::time::Duration;

use super::memory::JobMemory;
use crate::action::{Action, Plan, StatusWrite, Urgency, WaitingChange, WaitingWrite};

/// Counts of one job are written at most this often (`docs/semantics.md` §7).
pub(super) const COUNTS_EVERY: Duration = Duration::from_millis(250);
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

#[cfg(test)]
mod tests {
    use trainjob_api::conditions::Reason;

    use super::*;

    const NOW: Duration = Duration::from_secs(1_000);

    fn counts(urgency: Urgency) -> Action {
        Action::WriteStatus(StatusWrite {
            uid: "U".into(),
            resource_version: "1".into(),
            conditions: None,
            jobs_status: Some(Vec::new()),
            urgency,
            deadline_due: None,
        })
    }

    fn text(urgency: Urgency) -> Action {
        let (reason, message) = (Reason::PodsRunning, "m".into());
        Action::WriteWaiting(WaitingWrite {
            uid: "U".into(),
            resource_version: "1".into(),
            change: WaitingChange::Update { index: 0, reason, message, urgency },
        })
    }

    #[test]
    fn what_was_done_lately_waits_and_nothing_else_does() {
        let check = || Action::CheckPods { except_job_set: None, name_them: false };
        let urgent = || vec![counts(Urgency::AtOnce), text(Urgency::AtOnce), Action::ReadSnapshot];
        let (counted, told, checked) = (
            JobMemory { counts_written: Some(NOW), ..JobMemory::default() },
            JobMemory { text_written: Some(NOW), ..JobMemory::default() },
            JobMemory { pod_check: Some(NOW), ..JobMemory::default() },
        );
        let (counts, text) = (counts(Urgency::Coalesced), text(Urgency::Coalesced));
        for (memory, action, wait) in [
            (&counted, &counts, Some(COUNTS_EVERY)),
            (&counted, &text, None),
            (&counted, &check(), None),
            (&told, &counts, None),
            (&told, &text, Some(TEXT_EVERY)),
            (&told, &check(), None),
            (&checked, &counts, None),
            (&checked, &text, None),
            (&checked, &check(), Some(LOST_AFTER)),
        ] {
            let mut plan = Plan { actions: urgent(), ..Plan::default() };
            plan.actions.push(action.clone());
            let left = postpone(&mut plan, memory, NOW);
            assert_eq!(left, wait, "{action:?}, {memory:?}");
            let expected: Vec<_> =
                urgent().into_iter().chain(wait.is_none().then(|| action.clone())).collect();
            assert_eq!(plan.actions, expected, "{action:?}, {memory:?}");
        }
    }
}
