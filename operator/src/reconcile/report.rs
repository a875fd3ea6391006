//! What is said of an action: in the log, and to users when it fails.

use trainjob_core::{
    action::{Action, DeletionReason, StatusWrite},
    event::Event,
    facts::JobFacts,
};
use trainjob_engine::error::RequestError;

/// What users are told when an action fails.
pub(super) fn complaint(action: &Action, error: &RequestError) -> Option<Event> {
    let error = error.to_string();
    match action {
        Action::CreateSnapshot(_)
        | Action::ProbeSecret { .. }
        | Action::CreateSecret(_)
        | Action::CreateConfigMap(_)
        | Action::DeleteConfigMap { .. }
        | Action::CreatePodGroup(_)
        | Action::UpdatePodGroup { .. }
        | Action::ReadSnapshot
        | Action::ReadTrainJob
        | Action::ReadRuntime(_)
        | Action::CreateJobSet { .. }
        | Action::ReadJobSet
        | Action::UpdateJobSet { .. }
        | Action::SuspendJobSet { .. }
        | Action::DeleteJobSet { reason: DeletionReason::Rebuild { .. }, .. } => {
            Some(Event::CreationFailed(error))
        }
        Action::DeleteJobSet { reason: DeletionReason::JobEnded, .. }
        | Action::CheckPods { .. } => Some(Event::ReleaseFailed(error)),
        Action::DeleteTrainJob(_) => Some(Event::TtlDeletionFailed(error)),
        Action::WriteStatus(_)
        | Action::WriteWaiting(_)
        | Action::DeletePodGroup { .. }
        | Action::RecordEvent(_)
        | Action::RecordOutOfMemory { .. } => None,
    }
}

/// Logs what was done: what changes a job's course for everybody, the rest for who looks closer.
pub(super) fn report(job: &JobFacts, action: &Action) {
    let (key, uid, name) = (&job.key, &job.uid, name(action));
    match action {
        Action::WriteStatus(StatusWrite { deadline_due: Some(due), .. }) => {
            tracing::info!(job = %key, uid, %due, "failed by its deadline");
        }
        Action::DeleteTrainJob(deletion) => {
            tracing::info!(job = %key, uid, due = %deletion.due, "deleted by its TTL");
        }
        Action::CreateJobSet { .. }
        | Action::DeleteJobSet { .. }
        | Action::DeleteConfigMap { .. } => {
            tracing::info!(job = %key, uid, "{name} done");
        }
        Action::SuspendJobSet { suspend, .. } => {
            tracing::info!(job = %key, uid, suspend, "{name} done");
        }
        _ => tracing::debug!(job = %key, uid, "{name} done"),
    }
}

/// What an action is called in the log.
pub(super) const fn name(action: &Action) -> &'static str {
    match action {
        Action::WriteStatus(_) | Action::WriteWaiting(_) => "status write",
        Action::ReadTrainJob => "TrainJob read",
        Action::ReadRuntime(_) => "runtime read",
        Action::ProbeSecret { .. } => "Secret probe",
        Action::CreateSecret(_) => "Secret creation",
        Action::CreateConfigMap(_) => "ConfigMap creation",
        Action::DeleteConfigMap { .. } => "ConfigMap deletion",
        Action::CreatePodGroup(_) => "PodGroup creation",
        Action::UpdatePodGroup { .. } => "PodGroup update",
        Action::DeletePodGroup { .. } => "PodGroup deletion",
        Action::CreateSnapshot(_) => "snapshot creation",
        Action::ReadSnapshot => "snapshot read",
        Action::CreateJobSet { .. } => "JobSet creation",
        Action::ReadJobSet => "JobSet read",
        Action::UpdateJobSet { .. } => "JobSet update",
        Action::SuspendJobSet { .. } => "JobSet suspension",
        Action::DeleteJobSet { .. } => "JobSet deletion",
        Action::CheckPods { .. } => "Pod check",
        Action::DeleteTrainJob(_) => "TTL deletion",
        Action::RecordEvent(_) | Action::RecordOutOfMemory { .. } => "event",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only what may hold accelerators is a release.
    #[test]
    fn deletion_that_fails_is_told_by_its_reason() {
        let error = RequestError::NotLeading;
        let rebuild = DeletionReason::Rebuild { resource_version: "1".into() };
        for (reason, expected) in [
            (DeletionReason::JobEnded, Event::ReleaseFailed(error.to_string())),
            (rebuild, Event::CreationFailed(error.to_string())),
        ] {
            let deletion = Action::DeleteJobSet { uid: "U".into(), reason };
            assert_eq!(complaint(&deletion, &error), Some(expected), "{deletion:?}");
        }
    }
}
