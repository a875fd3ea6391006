//! The operation that a call begins with, which decides whose [share](trainjob_engine::shares) it takes.

use trainjob_core::{action::Action, build::RuntimeKey, pass::Call};
use trainjob_engine::shares::{Operation, Verb};

/// The operation of a call; `None` if it sends no request. Of a call that sends several, the one that changes something.
#[must_use]
pub const fn operation(call: Call<'_>) -> Option<Operation> {
    match call {
        Call::Act(action) => of_action(action),
        Call::Inspect(action) => inspection(action),
    }
}

const fn of_action(action: &Action) -> Option<Operation> {
    let (verb, kind) = match action {
        Action::WriteStatus(_) | Action::WriteWaiting(_) => (Verb::Patch, "trainjobs/status"),
        Action::ReadTrainJob => (Verb::Get, "trainjobs"),
        Action::ReadRuntime(RuntimeKey::Cluster { .. }) => (Verb::Get, "clustertrainingruntimes"),
        Action::ReadRuntime(RuntimeKey::Namespaced { .. }) => (Verb::Get, "trainingruntimes"),
        Action::CreateSnapshot(_) | Action::CreateConfigMap(_) => (Verb::Create, "configmaps"),
        Action::ReadSnapshot => (Verb::Get, "configmaps"),
        Action::ProbeSecret { .. } | Action::CreateSecret(_) => (Verb::Create, "secrets"),
        Action::DeleteConfigMap { .. } => (Verb::Delete, "configmaps"),
        Action::CreatePodGroup(_) => (Verb::Create, "podgroups"),
        Action::UpdatePodGroup { .. } => (Verb::Patch, "podgroups"),
        Action::DeletePodGroup { .. } => (Verb::Delete, "podgroups"),
        Action::CreateJobSet { .. } => (Verb::Create, "jobsets"),
        Action::ReadJobSet => (Verb::Get, "jobsets"),
        Action::UpdateJobSet { .. } | Action::SuspendJobSet { .. } => (Verb::Patch, "jobsets"),
        Action::DeleteJobSet { .. } => (Verb::Delete, "jobsets"),
        Action::CheckPods { .. } => (Verb::List, "pods"),
        Action::DeleteTrainJob(_) => (Verb::Delete, "trainjobs"),
        // Sent apart, when there is time for it.
        Action::RecordEvent(_) | Action::RecordOutOfMemory { .. } => return None,
    };
    Some(Operation { verb, kind })
}

const fn inspection(action: &Action) -> Option<Operation> {
    let kind = match action {
        Action::CreateSnapshot(_) | Action::CreateConfigMap(_) | Action::ProbeSecret { .. } => {
            "configmaps"
        }
        Action::CreatePodGroup(_) => "podgroups",
        Action::CreateJobSet { .. } => "jobsets",
        Action::WriteStatus(_)
        | Action::WriteWaiting(_)
        | Action::ReadTrainJob
        | Action::ReadRuntime(_)
        | Action::ReadSnapshot
        | Action::CreateSecret(_)
        | Action::DeleteConfigMap { .. }
        | Action::UpdatePodGroup { .. }
        | Action::DeletePodGroup { .. }
        | Action::ReadJobSet
        | Action::UpdateJobSet { .. }
        | Action::SuspendJobSet { .. }
        | Action::DeleteJobSet { .. }
        | Action::CheckPods { .. }
        | Action::DeleteTrainJob(_)
        | Action::RecordEvent(_)
        | Action::RecordOutOfMemory { .. } => return None,
    };
    Some(Operation { verb: Verb::Get, kind })
}
