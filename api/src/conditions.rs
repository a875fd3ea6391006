//! Conditions of a TrainJob: their types, reasons and messages, and how the list changes.
//!
//! The list is a map keyed by `type` whose order clients see (the `State` column shows the last
//! entry), so new types are appended and present ones keep their place.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::time::Timestamp;

/// Condition type: the TrainJob is, or after a resume was, suspended.
pub const SUSPENDED: &str = "Suspended";
/// Condition type: the TrainJob succeeded. Final.
pub const COMPLETE: &str = "Complete";
/// Condition type: the TrainJob failed. Final.
pub const FAILED: &str = "Failed";

/// Reason of [`SUSPENDED`] with status True.
pub const REASON_SUSPENDED: &str = "Suspended";
/// Reason of [`SUSPENDED`] with status False.
pub const REASON_RESUMED: &str = "Resumed";
/// Reason of [`FAILED`] when `activeDeadlineSeconds` ran out.
pub const REASON_DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
/// Reason of [`FAILED`] when `runtimeRef` names a kind nobody knows.
pub const REASON_RUNTIME_NOT_SUPPORTED: &str = "TrainingRuntimeNotSupported";

/// Message for [`REASON_SUSPENDED`].
pub const MESSAGE_SUSPENDED: &str = "TrainJob is suspended";
/// Message for [`REASON_RESUMED`].
pub const MESSAGE_RESUMED: &str = "TrainJob is resumed";
/// Message for [`REASON_DEADLINE_EXCEEDED`].
pub const MESSAGE_DEADLINE_EXCEEDED: &str = "TrainJob exceeded its active deadline";

/// JobSet's condition type for success.
pub const JOBSET_COMPLETED: &str = "Completed";
/// JobSet's condition type for failure.
pub const JOBSET_FAILED: &str = "Failed";

/// The condition of type `kind`, if the list has one.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// The condition of type `kind`, if the list has one and its status is True.
#[must_use]
pub fn find_true<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    find(conditions, kind).filter(|condition| condition.status == "True")
}

/// A condition as it is to be, without the instant of its last transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Desired<'a> {
    /// The type, such as [`SUSPENDED`].
    pub kind: &'a str,
    /// Whether the condition holds.
    pub holds: bool,
    /// The reason, in CamelCase.
    pub reason: &'a str,
    /// What a person reads.
    pub message: &'a str,
}

/// Brings the condition of `desired.kind` to what is desired.
///
/// `lastTransitionTime` becomes `at` only when the status changes (the standard semantics of
/// Kubernetes conditions); a new type is appended. Does nothing when nothing differs.
pub fn set(conditions: &mut Vec<Condition>, desired: Desired<'_>, at: Timestamp) {
    let status = if desired.holds { "True" } else { "False" };
    let transition = match find(conditions, desired.kind) {
        Some(present) if present.status == status => present.last_transition_time.clone(),
        _ => at.into(),
    };
    let condition = Condition {
        type_: desired.kind.into(),
        status: status.into(),
        reason: desired.reason.into(),
        message: desired.message.into(),
        last_transition_time: transition,
        observed_generation: None,
    };
    match conditions.iter_mut().find(|present| present.type_ == desired.kind) {
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUSPEND: Desired<'static> = Desired {
        kind: SUSPENDED,
        holds: true,
        reason: REASON_SUSPENDED,
        message: MESSAGE_SUSPENDED,
    };
    const RESUME: Desired<'static> =
        Desired { kind: SUSPENDED, holds: false, reason: REASON_RESUMED, message: MESSAGE_RESUMED };

    #[test]
    fn a_transition_time_moves_only_when_the_status_does() {
        let mut list = Vec::new();
        set(&mut list, SUSPEND, Timestamp(10));
        set(&mut list, SUSPEND, Timestamp(20));
        assert_eq!(Timestamp::from(&list[0].last_transition_time), Timestamp(10));
        set(&mut list, RESUME, Timestamp(30));
        assert_eq!(Timestamp::from(&list[0].last_transition_time), Timestamp(30));
        assert_eq!(list.len(), 1);
    }

    #[test]
    fn a_condition_that_is_false_is_found_but_does_not_hold() {
        let mut list = Vec::new();
        set(&mut list, RESUME, Timestamp(1));
        assert!(find(&list, SUSPENDED).is_some());
        assert!(find_true(&list, SUSPENDED).is_none());
    }
}
