//! What can be done about a record.

use std::time::Duration;

use trainjob_api::lifecycle::v1alpha1::record::TrainJobRecordStatus;

/// Everything that this program can do about a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Create the record. It is there before anybody waits for it.
    Create,
    /// GET the record, then LIST its Pods (AG5).
    Prove,
    /// LIST its Pods, since none is known to be open and the TrainJob is over.
    ListPods,
    /// GET the TrainJob, since its word decides why Pods of this batch were stopped (row 7).
    ReadJob,
    /// Write the status, fenced by UID and version.
    Store(Box<TrainJobRecordStatus>),
    /// Remove the finalizer of the Pod with this UID and annotate it.
    Release(String),
    /// Remove the finalizer of the Pod with this UID, which was not counted, and annotate it, so that nobody counts it
    /// later (AH2). Its share is logged.
    LetGo(String),
}

/// What to do, and when to ask again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// What to do now.
    pub actions: Vec<Action>,
    /// After how long to ask again, if nothing changes before.
    pub after: Option<Duration>,
}

impl Plan {
    /// Whether there is something that waits to be written into the record.
    pub(crate) fn writes(&self) -> bool {
        self.actions.iter().any(|action| match action {
            Action::Create | Action::Store(_) | Action::ReadJob | Action::LetGo(_) => true,
            Action::Prove | Action::ListPods | Action::Release(_) => false,
        })
    }

    /// Asks again after this at the latest.
    pub(super) fn ask_after(&mut self, after: Option<Duration>) {
        self.after = [self.after, after].into_iter().flatten().min();
    }
}
