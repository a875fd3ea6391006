//! What the status of a job says while it is not released.
//!
//! Its `Failed` condition is final and stays as clients know it. So the condition `Waiting` says what the release waits
//! for. It stands before `Failed` in the list, because `kubectl get` shows the last one.
//!
//! Most releases take seconds, and nothing is said of those.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use trainjob_api::{
    conditions::{self, Reason, WAITING},
    time::Timestamp,
};

use crate::{
    action::{Urgency, WaitingChange, WaitingWrite},
    facts::{Finished, JobFacts},
};

/// Seconds after the end of a job from which its status says that it is not released.
pub const SAID_AFTER_SECONDS: i64 = 10;

/// Whether it is time to say what the release of a job waits for that ended so.
#[must_use]
pub fn is_said(finished: Finished, now: Timestamp) -> bool {
    now >= finished.at.plus(SAID_AFTER_SECONDS)
}

/// The write that makes the `Waiting` condition of a finished job say why it is not released, or takes it away; `None`
/// when nothing differs.
#[must_use]
pub fn write(job: &JobFacts, why: Option<(Reason, &str)>, now: Timestamp) -> Option<WaitingWrite> {
    let why = why.map(|(reason, message)| (reason, conditions::cut(message)));
    let change = match (job.waiting.as_deref(), why) {
        (None, None) => return None,
        (None, Some((reason, message))) => WaitingChange::Add(Condition {
            type_: WAITING.into(),
            status: "True".into(),
            reason: reason.as_str().into(),
            message: message.into(),
            last_transition_time: now.into(),
            observed_generation: None,
        }),
        (Some(stored), None) => WaitingChange::Remove { index: stored.index },
        (Some(stored), Some((reason, message)))
            if stored.reason == reason.as_str() && stored.message == message =>
        {
            return None;
        }
        (Some(stored), Some((reason, message))) => {
            let another = stored.reason != reason.as_str();
            let urgency = if another { Urgency::AtOnce } else { Urgency::Coalesced };
            WaitingChange::Update { index: stored.index, reason, message: message.into(), urgency }
        }
    };
    let (uid, resource_version) = (job.uid.clone(), job.resource_version.clone());
    Some(WaitingWrite { uid, resource_version, change })
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use serde_json::{Value, json};
    use trainjob_api::TrainJob;

    use super::*;
    use crate::facts::Outcome;

    const NOW: Timestamp = Timestamp(2_000);

    fn waiting(message: &str) -> Value {
        json!({
            "type": "Waiting", "status": "True", "reason": "PodsRunning", "message": message,
            "lastTransitionTime": "1970-01-01T00:33:20Z",
        })
    }

    /// A job that failed, with these conditions before and after the terminal one.
    fn job(before: &[Value], after: &[Value]) -> Value {
        let failed = json!({
            "type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "m",
            "lastTransitionTime": "1970-01-01T00:16:40Z",
        });
        let conditions: Vec<_> = before.iter().chain([&failed]).chain(after).collect();
        json!({
            "metadata": {"name": "job", "uid": "U", "resourceVersion": "7"},
            "spec": {"runtimeRef": {"name": "r"}},
            "status": {"conditions": conditions},
        })
    }

    #[test]
    fn condition_comes_first_says_what_differs_and_goes_and_no_other_changes() {
        let suspended = json!({
            "type": "Suspended", "status": "False", "reason": "Resumed", "message": "",
            "lastTransitionTime": "1970-01-01T00:15:00Z",
        });
        let why = Some((Reason::PodsRunning, "a runs"));
        for (what, stored, why, expected) in [
            ("comes", job(&[], &[]), why, Some(job(&[waiting("a runs")], &[]))),
            (
                "comes before all others",
                job(from_ref(&suspended), &[]),
                why,
                Some(job(&[waiting("a runs"), suspended.clone()], &[])),
            ),
            (
                "says something else, and keeps its time and place",
                job(from_ref(&suspended), &[waiting("b runs")]),
                why,
                Some(job(from_ref(&suspended), &[waiting("a runs")])),
            ),
            ("says it already", job(&[waiting("a runs")], &[]), why, None),
            (
                "goes",
                job(&[suspended.clone(), waiting("a")], &[]),
                None,
                Some(job(from_ref(&suspended), &[])),
            ),
            ("is not there", job(&[], &[]), None, None),
        ] {
            let parsed: TrainJob = serde_json::from_value(stored.clone()).unwrap();
            let write = write(&JobFacts::of(&parsed), why, NOW);
            let patched = write.map(|write| {
                let mut patched = stored;
                json_patch::patch(&mut patched, &write.patch()).unwrap();
                patched
            });
            assert_eq!(patched, expected, "{what}");
        }
    }

    #[test]
    fn another_reason_is_written_at_once_and_another_text_together_with_later_ones() {
        let parsed: TrainJob = serde_json::from_value(job(&[waiting("a runs")], &[])).unwrap();
        for (reason, expected) in [
            (Reason::PodsRunning, Urgency::Coalesced),
            (Reason::JobSetTerminating, Urgency::AtOnce),
        ] {
            let write = write(&JobFacts::of(&parsed), Some((reason, "b")), NOW).unwrap();
            let WaitingChange::Update { urgency, .. } = write.change else { panic!("{write:?}") };
            assert_eq!(urgency, expected, "{reason:?}");
        }
    }

    #[test]
    fn write_names_uid_and_version_of_what_it_was_decided_on() {
        let parsed: TrainJob = serde_json::from_value(job(&[], &[])).unwrap();
        let write = write(&JobFacts::of(&parsed), Some((Reason::PodsRunning, "")), NOW).unwrap();
        let patch = serde_json::to_value(write.patch()).unwrap();
        let fences = json!([
            {"op": "replace", "path": "/metadata/uid", "value": "U"},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        ]);
        assert_eq!(patch.as_array().unwrap()[..2], fences.as_array().unwrap()[..]);
    }

    #[test]
    fn nothing_is_said_of_a_release_that_takes_less_than_ten_seconds() {
        let finished = Finished { at: Timestamp(1_000), outcome: Outcome::DeadlineExceeded };
        for (now, said) in [(1_000, false), (1_009, false), (1_010, true), (i64::MAX, true)] {
            assert_eq!(is_said(finished, Timestamp(now)), said, "{now}");
        }
    }
}
