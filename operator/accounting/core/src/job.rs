//! What a decision needs to know of the TrainJob.

use trainjob_api::{lifecycle::v1alpha1::record_words::Outcome, time::Timestamp};

/// A TrainJob as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// It is there and has not finished.
    Running {
        /// What it says of being suspended.
        suspension: Suspension,
    },
    /// It is there and has finished.
    Finished(Finish),
    /// There is no TrainJob of this UID.
    Gone {
        /// What it said of being suspended when it was last seen.
        suspension: Suspension,
    },
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
    /// What it says of being suspended.
    pub suspension: Suspension,
}

/// What a TrainJob says of being suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspension {
    /// It never was, and is not to be.
    Never,
    /// When its condition `Suspended` last changed.
    ChangedAt(Timestamp),
    /// Its spec asks for it and its condition does not tell of it yet. The JobSet is suspended before the condition is
    /// written, so Pods may have ended of it already.
    Asked,
}

impl Suspension {
    /// Whether a Pod that was created then is from before it. Of the same second nobody can say which came first.
    #[must_use]
    pub fn is_after(self, created: Timestamp) -> bool {
        match self {
            Self::Never => false,
            Self::ChangedAt(at) => at > created,
            Self::Asked => true,
        }
    }
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
    /// What the record says of it. The TrainJob may be gone after it had finished, and who stored how may know it better, since
    /// none that has finished runs again: so the outcome that is stored stays.
    #[must_use]
    pub fn outcome(&self, stored: Option<Outcome>) -> Outcome {
        let finished = stored.filter(|it| !matches!(it, Outcome::Running | Outcome::Deleted));
        match self {
            Self::Running { .. } => finished.unwrap_or(Outcome::Running),
            Self::Finished(Finish { how, .. }) => match how {
                FinishedHow::Complete => Outcome::Complete,
                FinishedHow::Failed => Outcome::Failed,
                FinishedHow::DeadlineExceeded => Outcome::DeadlineExceeded,
            },
            Self::Gone { .. } => finished.unwrap_or(Outcome::Deleted),
        }
    }

    /// Whether nothing will be started any more.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        match self {
            Self::Running { .. } => false,
            Self::Finished(_) | Self::Gone { .. } => true,
        }
    }

    /// Whether its deadline ended it.
    #[must_use]
    pub const fn deadline_exceeded(&self) -> bool {
        matches!(self, Self::Finished(Finish { how: FinishedHow::DeadlineExceeded, .. }))
    }

    /// What it says of being suspended.
    #[must_use]
    pub const fn suspension(&self) -> Suspension {
        match self {
            Self::Running { suspension }
            | Self::Finished(Finish { suspension, .. })
            | Self::Gone { suspension } => *suspension,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Job = Job::Gone { suspension: Suspension::Never };

    #[test]
    fn a_job_that_runs_as_far_as_is_known_keeps_how_it_finished() {
        let running = Job::Running { suspension: Suspension::Never };
        for (stored, expected) in [
            (None, Outcome::Running),
            (Some(Outcome::Running), Outcome::Running),
            (Some(Outcome::Complete), Outcome::Complete),
            (Some(Outcome::Failed), Outcome::Failed),
            (Some(Outcome::DeadlineExceeded), Outcome::DeadlineExceeded),
            (Some(Outcome::Deleted), Outcome::Running),
        ] {
            assert_eq!(running.outcome(stored), expected, "{stored:?}");
        }
    }

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
            assert_eq!(UNKNOWN.outcome(stored), expected, "{stored:?}");
        }
    }
}
