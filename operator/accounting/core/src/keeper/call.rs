//! The requests about a record, and their answers.

use std::time::Duration;

use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus;

use crate::{answer::Failure, job::Job, pod::Pod};

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// POST of the record.
    Create {
        /// Whether it gets the long name, because another TrainJob's record has the short one.
        long_name: bool,
    },
    /// GET of the record.
    Get {
        /// Whether that of the long name.
        long_name: bool,
    },
    /// LIST of its Pods, the most recent.
    List {
        /// Whether the TrainJob was over when it was asked for.
        is_over: bool,
    },
    /// GET of the TrainJob.
    ReadJob,
    /// PUT of the status, fenced.
    Store(Box<Store>),
    /// PATCH of a Pod: the finalizer goes, the annotation comes.
    Release {
        /// UID of the Pod, which fences it.
        uid: String,
        /// Its name.
        name: String,
        /// Whether it is counted. One that is not is let go, and its share is logged (AH2).
        is_counted: bool,
    },
}

/// A status that is to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Store {
    /// Which record in which version it replaces.
    pub fence: Fence,
    /// The status.
    pub status: TrainJobRecordStatus,
    /// How many of the Pods that were let go it tells of.
    pub tells: usize,
}

/// A version of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The record, as it was created or read.
    Record(Fence, Box<TrainJobRecordStatus>),
    /// All Pods of the record, each with its version, as of the version of the list.
    Pods {
        /// The version of the list.
        version: u64,
        /// The Pods.
        pods: Vec<(u64, Pod)>,
    },
    /// The TrainJob was read; what it says is with the next plan.
    Job,
    /// The status is stored, in this version.
    Stored {
        /// The version.
        version: String,
    },
    /// The Pod is released, in this version.
    Released {
        /// The version.
        version: u64,
    },
    /// It failed.
    Failed {
        /// Why.
        failure: Failure,
        /// How long the answer asks to wait.
        retry_after: Duration,
    },
}

impl Answer {
    /// There is no TrainJob, where the watch has shown this one. An API server that has just started says so of every custom
    /// resource, so only the watch shows that one has gone. Where it does not yet, it may have more to tell, such as that the
    /// TrainJob was suspended before it was deleted.
    #[must_use]
    pub const fn without_job(watched: &Job) -> Self {
        match watched {
            Job::Running { .. } => {
                Self::Failed { failure: Failure::NotFound, retry_after: Duration::ZERO }
            }
            Job::Finished(_) | Job::Gone { .. } => Self::Job,
        }
    }
}

/// What is to be sent now, and when to ask again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calls {
    /// What is to be sent.
    pub now: Vec<Call>,
    /// After how long to ask again, if there are no news before.
    pub after: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        job::{Finish, FinishedHow, Suspension},
        testing::at,
    };

    #[test]
    fn that_there_is_no_train_job_is_an_answer_unless_the_watch_shows_that_it_runs() {
        let suspension = Suspension::Never;
        let (reason, message) = (String::new(), String::new());
        let finish =
            Finish { how: FinishedHow::Complete, at: at(1_000), reason, message, suspension };
        for (watched, is_answer) in [
            (Job::Running { suspension }, false),
            (Job::Finished(finish), true),
            (Job::Gone { suspension }, true),
        ] {
            assert_eq!(Answer::without_job(&watched) == Answer::Job, is_answer, "{watched:?}");
        }
    }
}
