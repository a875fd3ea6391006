//! What a decision needs to know of the TrainJob.

use trainjob_api::{lifecycle::v1alpha1::record_words::Outcome, time::Timestamp};

/// A TrainJob as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// It is there and has not finished.
    Running {
        /// When its condition `Suspended` last changed.
        suspended_changed_at: Option<Timestamp>,
    },
    /// It is there and has finished.
    Finished(Finish),
    /// There is no TrainJob of this UID.
    Gone,
}

/// How a TrainJob finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// In which way.
    pub how: FinishedHow,
    /// When.
    pub at: Timestamp,
    /// The reason of its terminal condition.
    pub reason: String,
    /// The message of it.
    pub message: String,
    /// When its condition `Suspended` last changed.
    pub suspended_changed_at: Option<Timestamp>,
}

/// In which way a TrainJob finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishedHow {
    /// It succeeded.
    Complete,
    /// It failed.
    Failed,
    /// Its deadline failed it.
    DeadlineExceeded,
}

impl Job {
    /// What the record says of it. The TrainJob may be gone after it had finished, so the outcome that is stored stays.
    #[must_use]
    pub fn outcome(&self, stored: Option<Outcome>) -> Outcome {
        match self {
            Self::Running { .. } => Outcome::Running,
            Self::Finished(Finish { how, .. }) => match how {
                FinishedHow::Complete => Outcome::Complete,
                FinishedHow::Failed => Outcome::Failed,
                FinishedHow::DeadlineExceeded => Outcome::DeadlineExceeded,
            },
            Self::Gone => match stored {
                None | Some(Outcome::Running | Outcome::Deleted) => Outcome::Deleted,
                Some(
                    finished @ (Outcome::Complete | Outcome::Failed | Outcome::DeadlineExceeded),
                ) => finished,
            },
        }
    }

    /// Whether nothing will be started any more.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        match self {
            Self::Running { .. } => false,
            Self::Finished(_) | Self::Gone => true,
        }
    }

    /// Whether its deadline ended it.
    #[must_use]
    pub const fn deadline_exceeded(&self) -> bool {
        matches!(self, Self::Finished(Finish { how: FinishedHow::DeadlineExceeded, .. }))
    }

    /// When its condition `Suspended` last changed.
    #[must_use]
    pub const fn suspended_changed_at(&self) -> Option<Timestamp> {
        match self {
            Self::Running { suspended_changed_at }
            | Self::Finished(Finish { suspended_changed_at, .. }) => *suspended_changed_at,
            Self::Gone => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_gone_keeps_the_outcome_that_was_stored() {
        for (stored, expected) in [
            (None, Outcome::Deleted),
            (Some(Outcome::Running), Outcome::Deleted),
            (Some(Outcome::Complete), Outcome::Complete),
            (Some(Outcome::Failed), Outcome::Failed),
            (Some(Outcome::DeadlineExceeded), Outcome::DeadlineExceeded),
            (Some(Outcome::Deleted), Outcome::Deleted),
        ] {
            assert_eq!(Job::Gone.outcome(stored), expected, "{stored:?}");
        }
    }
}
