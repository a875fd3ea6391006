//! Conditions of a TrainJob: their types, reasons and messages, and how the list changes.
//!
//! The list is a map keyed by `type` whose order clients see (the `State` column shows the last
//! entry), so new types are appended and present ones keep their place.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::time::Timestamp;

/// The types of a TrainJob's conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionType {
    /// The TrainJob is, or after a resume was, suspended.
    Suspended,
    /// It succeeded. Final.
    Complete,
    /// It failed. Final.
    Failed,
    /// It cannot go on, or is not released, and why. There only while it is so, and the only type that Kubeflow
    /// Trainer does not have.
    Waiting,
}

impl ConditionType {
    /// As `type` has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "Suspended",
            Self::Complete => "Complete",
            Self::Failed => "Failed",
            Self::Waiting => "Waiting",
        }
    }
}

/// The reasons that this operator gives. Those of [`ConditionType::Complete`], and most of
/// [`ConditionType::Failed`], are JobSet's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is suspended.
    Suspended,
    /// It was suspended.
    Resumed,
    /// `activeDeadlineSeconds` ran out.
    DeadlineExceeded,
    /// `runtimeRef` names a kind that nobody knows.
    TrainingRuntimeNotSupported,
    /// The runtime does not exist.
    RuntimeNotFound,
    /// Runtime and job do not fit together.
    BuildFailed,
    /// The ConfigMap of the snapshot's name is somebody else's, or cannot be read.
    SnapshotConflict,
    /// A Secret or ConfigMap of a child's name is somebody else's.
    NameConflict,
    /// The JobSet of its name is somebody else's.
    JobSetConflict,
    /// The JobSet of its name is being deleted, and something keeps it.
    JobSetTerminating,
    /// The PodGroup of its name is somebody else's.
    PodGroupConflict,
    /// The cluster has no PodGroups of the scheduler that the runtime asks for, or they cannot be listed.
    PodGroupNotServed,
    /// Its deadline failed it, and Pods of it still run.
    PodsRunning,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Suspended,
        Self::Resumed,
        Self::DeadlineExceeded,
        Self::TrainingRuntimeNotSupported,
        Self::RuntimeNotFound,
        Self::BuildFailed,
        Self::SnapshotConflict,
        Self::NameConflict,
        Self::JobSetConflict,
        Self::JobSetTerminating,
        Self::PodGroupConflict,
        Self::PodGroupNotServed,
        Self::PodsRunning,
    ];

    /// As `reason` has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "Suspended",
            Self::Resumed => "Resumed",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::TrainingRuntimeNotSupported => "TrainingRuntimeNotSupported",
            Self::RuntimeNotFound => "RuntimeNotFound",
            Self::BuildFailed => "BuildFailed",
            Self::SnapshotConflict => "SnapshotConflict",
            Self::NameConflict => "NameConflict",
            Self::JobSetConflict => "JobSetConflict",
            Self::JobSetTerminating => "JobSetTerminating",
            Self::PodGroupConflict => "PodGroupConflict",
            Self::PodGroupNotServed => "PodGroupNotServed",
            Self::PodsRunning => "PodsRunning",
        }
    }

    /// The type of the conditions that it is a reason of.
    #[must_use]
    pub const fn condition(self) -> ConditionType {
        match self {
            Self::Suspended | Self::Resumed => ConditionType::Suspended,
            Self::DeadlineExceeded | Self::TrainingRuntimeNotSupported => ConditionType::Failed,
            Self::RuntimeNotFound
            | Self::BuildFailed
            | Self::SnapshotConflict
            | Self::NameConflict
            | Self::JobSetConflict
            | Self::JobSetTerminating
            | Self::PodGroupConflict
            | Self::PodGroupNotServed
            | Self::PodsRunning => ConditionType::Waiting,
        }
    }
}

/// See [`ConditionType::Suspended`].
pub const SUSPENDED: &str = ConditionType::Suspended.as_str();
/// See [`ConditionType::Complete`].
pub const COMPLETE: &str = ConditionType::Complete.as_str();
/// See [`ConditionType::Failed`].
pub const FAILED: &str = ConditionType::Failed.as_str();
/// See [`ConditionType::Waiting`].
pub const WAITING: &str = ConditionType::Waiting.as_str();
/// See [`Reason::DeadlineExceeded`].
pub const REASON_DEADLINE_EXCEEDED: &str = Reason::DeadlineExceeded.as_str();

/// Message for [`Reason::Suspended`].
pub const MESSAGE_SUSPENDED: &str = "TrainJob is suspended";
/// Message for [`Reason::Resumed`].
pub const MESSAGE_RESUMED: &str = "TrainJob is resumed";
/// Message for [`Reason::DeadlineExceeded`].
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

/// The longest message of a condition, in bytes. The API server refuses a status with a longer one, so that nothing of
/// the job would be stored any more.
pub const MAX_MESSAGE_BYTES: usize = 32_768;

/// A message cut to what may be stored, at the end of a character.
#[must_use]
pub fn cut(message: &str) -> &str {
    message.get(..message.floor_char_boundary(MAX_MESSAGE_BYTES)).unwrap_or_default()
}

/// Brings the condition that `reason` belongs to to what is desired. A message that is too long is [`cut`].
///
/// `lastTransitionTime` becomes `at` only when the status changes (the standard semantics of
/// Kubernetes conditions); a new type is appended. Does nothing when nothing differs.
pub fn set(
    conditions: &mut Vec<Condition>,
    (reason, message): (Reason, &str),
    holds: bool,
    at: Timestamp,
) {
    let (kind, status) = (reason.condition().as_str(), if holds { "True" } else { "False" });
    let transition = match find(conditions, kind) {
        Some(present) if present.status == status => present.last_transition_time.clone(),
        _ => at.into(),
    };
    let condition = Condition {
        type_: kind.into(),
        status: status.into(),
        reason: reason.as_str().into(),
        message: cut(message).into(),
        last_transition_time: transition,
        observed_generation: None,
    };
    match conditions.iter_mut().find(|present| present.type_ == kind) {
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUSPEND: (Reason, &str) = (Reason::Suspended, MESSAGE_SUSPENDED);
    const RESUME: (Reason, &str) = (Reason::Resumed, MESSAGE_RESUMED);

    #[test]
    fn transition_time_moves_only_when_the_status_does() {
        let mut list = Vec::new();
        set(&mut list, SUSPEND, true, Timestamp(10));
        set(&mut list, SUSPEND, true, Timestamp(20));
        assert_eq!(Timestamp::from(&list[0].last_transition_time), Timestamp(10));
        set(&mut list, RESUME, false, Timestamp(30));
        assert_eq!(Timestamp::from(&list[0].last_transition_time), Timestamp(30));
        assert_eq!(list.len(), 1);
    }

    #[test]
    fn condition_that_is_false_is_found_but_does_not_hold() {
        let mut list = Vec::new();
        set(&mut list, RESUME, false, Timestamp(1));
        assert!(find(&list, SUSPENDED).is_some());
        assert!(find_true(&list, SUSPENDED).is_none());
    }

    #[test]
    fn message_that_is_too_long_is_cut_at_the_end_of_a_character() {
        for (long, kept) in [
            ("x".repeat(MAX_MESSAGE_BYTES), MAX_MESSAGE_BYTES),
            ("x".repeat(MAX_MESSAGE_BYTES + 1), MAX_MESSAGE_BYTES),
            ("é".repeat(MAX_MESSAGE_BYTES), MAX_MESSAGE_BYTES),
            (format!("x{}", "é".repeat(MAX_MESSAGE_BYTES)), MAX_MESSAGE_BYTES - 1),
            (format!("x{}", "\u{1f4a5}".repeat(MAX_MESSAGE_BYTES)), MAX_MESSAGE_BYTES - 3),
        ] {
            let mut list = Vec::new();
            set(&mut list, (Reason::BuildFailed, &long), true, Timestamp(1));
            assert_eq!(list[0].message.len(), kept);
            assert!(long.starts_with(&list[0].message));
        }
    }

    #[test]
    fn every_reason_is_documented_beside_its_condition() {
        let page = include_str!("../../docs/semantics.md");
        for reason in Reason::ALL {
            let (kind, reason) = (reason.condition().as_str(), reason.as_str());
            let named = |name: &str| page.contains(&format!("`{name}`"));
            assert!(named(kind) && named(reason), "{kind}, {reason}");
        }
    }
}
