//! Everything this operator can ever do to a cluster.
//!
//! [`Action`] is meant to be read as that list. Each action is safe to repeat: creations have fixed
//! names, updates and deletions name the UID, and where the decision depended on the object's content
//! also the version, of what they were decided on.

use json_patch::{
    AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, jsonptr::PointerBuf,
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Condition};
use serde_json::Value;
use trainjob_api::{JobSet, conditions::Reason, time::Timestamp, v1alpha1::train_job::JobStatus};

use crate::{
    build::{PodGroup, RuntimeKey, SecretClaim},
    event::Event,
    facts::{self, Finished, Outcome, Scheduler},
    mark::Marking,
    observed::Propagation,
    text::Text,
};

/// What to do now, and when to ask again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// In this order; the first that fails ends the pass.
    pub actions: Vec<Action>,
    /// The earliest instant at which time alone changes the answer.
    pub next: Option<Timestamp>,
    /// What the job waits for, if it cannot go on.
    pub waiting: Option<Waiting>,
    /// When the actions have succeeded, the job's JobSet is made from inputs with this digest.
    pub applied_spec_hash: Option<u64>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Change the TrainJob's status.
    WriteStatus(StatusWrite),
    /// Change the `Waiting` condition of a finished TrainJob, and nothing else of its status.
    WriteWaiting(WaitingWrite),
    /// Read the TrainJob: whether it still exists.
    ReadTrainJob,
    /// Read the runtime that the job names, which has made room for others.
    ReadRuntime(RuntimeKey),
    /// Create the ConfigMap that freezes the runtime. Never overwritten.
    CreateSnapshot(Box<ConfigMap>),
    /// Read the ConfigMap under the snapshot's name.
    ReadSnapshot,
    /// See that a Secret's name is free, by a creation that is not carried out. Only creating tells: no
    /// Secret is ever read.
    ProbeSecret {
        /// The Secret.
        claim: Box<SecretClaim>,
        /// Name of a ConfigMap that is made after it: where that is the job's own, so is the Secret.
        witness: Option<String>,
    },
    /// Create a Secret; one that is there is the job's own, because its name was free when the snapshot
    /// was created.
    CreateSecret(Box<SecretClaim>),
    /// Create a ConfigMap that Pods read. One that is there is judged by its owner, and by what it says.
    CreateConfigMap(Box<ConfigMap>),
    /// Delete a ConfigMap of the job's own that says something else than one made now would, unless there is a
    /// JobSet after all: its Pods may read it.
    DeleteConfigMap {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// Its version when it was read.
        resource_version: String,
    },
    /// Create the PodGroup.
    CreatePodGroup(Box<PodGroup>),
    /// Change what a PodGroup asks for.
    UpdatePodGroup {
        /// Whose PodGroup.
        scheduler: Scheduler,
        /// UID of the PodGroup.
        uid: String,
        /// Version of the PodGroup the decision was made on.
        resource_version: String,
        /// A merge patch of its `spec`.
        spec: Value,
    },
    /// Delete a PodGroup.
    DeletePodGroup {
        /// Whose PodGroup.
        scheduler: Scheduler,
        /// UID of the PodGroup.
        uid: String,
    },
    /// Create the JobSet.
    CreateJobSet {
        /// The JobSet.
        job_set: Text<JobSet>,
        /// Whether its Pods are counted.
        marking: Marking,
    },
    /// Read the complete JobSet.
    ReadJobSet,
    /// Change a suspended JobSet.
    UpdateJobSet {
        /// UID of the JobSet.
        uid: String,
        /// Version of the JobSet the decision was made on.
        resource_version: String,
        /// What changes, [fenced](crate::build::JobSetUpdate::patch) by both.
        patch: Text<Patch>,
    },
    /// Suspend or resume a JobSet, and change nothing else of it.
    SuspendJobSet {
        /// UID of the JobSet.
        uid: String,
        /// Version of the JobSet the decision was made on.
        resource_version: String,
        /// The value of `spec.suspend`.
        suspend: bool,
    },
    /// Delete the JobSet in the foreground.
    DeleteJobSet {
        /// UID of the JobSet.
        uid: String,
        /// Why.
        reason: DeletionReason,
    },
    /// Ask whether Pods of the job's JobSet still run.
    CheckPods {
        /// UID of a JobSet of the same name that is not ours; its Pods do not count.
        except_job_set: Option<String>,
        /// Whether it is time to say which they are. That takes more than their metadata.
        name_them: bool,
    },
    /// Delete the TrainJob, because its TTL has passed.
    DeleteTrainJob(TtlDeletion),
    /// Tell users, best effort.
    RecordEvent(Event),
    /// Tell users whether a container of the failed JobSet was [out of memory](crate::out_of_memory), best
    /// effort: nothing waits until its Pods were asked for.
    RecordOutOfMemory {
        /// UID of the JobSet.
        job_set: String,
    },
}

/// Why a JobSet is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionReason {
    /// The end of the job calls for it, whatever is in the JobSet: it may hold accelerators.
    JobEnded,
    /// It has never run, and is made anew from what the job says now.
    Rebuild {
        /// Version of the JobSet the decision was made on.
        resource_version: String,
    },
}

impl DeletionReason {
    /// Version of the JobSet, where the decision was made on what is in it.
    #[must_use]
    pub fn resource_version(&self) -> Option<&str> {
        match self {
            Self::JobEnded => None,
            Self::Rebuild { resource_version } => Some(resource_version),
        }
    }
}

/// A change of a TrainJob's status. Fields that are `None` stay as they are.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusWrite {
    /// UID of the TrainJob.
    pub uid: String,
    /// Version the decision was made on.
    pub resource_version: String,
    /// The complete new list of conditions.
    pub conditions: Option<Vec<Condition>>,
    /// The complete new `jobsStatus`; empty removes the field.
    pub jobs_status: Option<Vec<JobStatus>>,
    /// How soon it must be written.
    pub urgency: Urgency,
    /// When the deadline that this write enforces was due, if it does.
    pub deadline_due: Option<Timestamp>,
}

impl StatusWrite {
    /// The end that the job has come to once this is stored, and the reason of the condition that says so.
    #[must_use]
    pub fn end(&self) -> Option<(Finished, &str)> {
        facts::end(self.conditions.as_deref()?)
    }
}

/// A change of the `Waiting` condition of a finished TrainJob.
///
/// The operator does not keep the conditions of finished jobs, which are many. So it changes one of them by its place in
/// the list, which the fence on the version makes safe.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingWrite {
    /// UID of the TrainJob.
    pub uid: String,
    /// Version the decision was made on.
    pub resource_version: String,
    /// What changes.
    pub change: WaitingChange,
}

/// What changes about a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitingChange {
    /// It comes first, so that the last condition, which `kubectl get` shows, stays the terminal one.
    Add(Condition),
    /// It says something else.
    Update {
        /// Its place in the list.
        index: usize,
        /// Its reason.
        reason: Reason,
        /// Its message.
        message: String,
        /// How soon it must be written.
        urgency: Urgency,
    },
    /// It goes.
    Remove {
        /// Its place in the list.
        index: usize,
    },
}

impl WaitingWrite {
    /// The change as a JSON patch, which the API server refuses if the job is another or has changed.
    #[must_use]
    pub fn patch(&self) -> Patch {
        let path = |tokens: &[&str]| PointerBuf::from_tokens(tokens.iter().copied());
        let fence = |field, value: &str| {
            let path = path(&["metadata", field]);
            PatchOperation::Replace(ReplaceOperation { path, value: value.into() })
        };
        let of = |index: usize| index.to_string();
        let mut operations =
            vec![fence("uid", &self.uid), fence("resourceVersion", &self.resource_version)];
        match &self.change {
            WaitingChange::Add(condition) => {
                let path = path(&["status", "conditions", "0"]);
                let value = serde_json::json!(condition);
                operations.push(PatchOperation::Add(AddOperation { path, value }));
            }
            WaitingChange::Update { index, reason, message, .. } => {
                operations.extend([("reason", reason.as_str()), ("message", message)].map(
                    |(field, value)| {
                        let path = path(&["status", "conditions", &of(*index), field]);
                        PatchOperation::Replace(ReplaceOperation { path, value: value.into() })
                    },
                ));
            }
            WaitingChange::Remove { index } => {
                let path = path(&["status", "conditions", &of(*index)]);
                operations.push(PatchOperation::Remove(RemoveOperation { path }));
            }
        }
        Patch(operations)
    }
}

/// How soon a status must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Now: a condition changed, or no Pod is active any more (Kueue waits for that).
    AtOnce,
    /// Counts and texts that change quickly: together with later ones, counts within a quarter of a second, texts within
    /// a minute.
    Coalesced,
}

/// The deletion of a TrainJob whose TTL has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TtlDeletion {
    /// UID of the TrainJob.
    pub uid: String,
    /// Version the decision was made on: a TTL changed a moment ago wins.
    pub resource_version: String,
    /// How its dependents go.
    pub propagation: Propagation,
    /// How it finished.
    pub outcome: Outcome,
    /// When the deletion became possible; lateness is measured from here.
    pub due: Timestamp,
}

/// Why a job cannot go on by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// For the runtime to be created or changed. Its watch says so.
    Runtime(RuntimeKey),
    /// For a JobSet of its name that is not ours, or ours and terminating, to be gone. Its watch says so.
    JobSet,
    /// For a ConfigMap under the snapshot's name that is not usable to be gone. Nothing watches it: ask again.
    Snapshot,
    /// For a Secret or ConfigMap that has the name of a child and cannot be it to be gone. Nothing watches it:
    /// ask again.
    Name,
    /// For a PodGroup of its name that is not ours, or ours and terminating, to be gone, or for the kind to
    /// be installed. Its watch says so.
    PodGroup,
    /// For the last Pods of a job that its deadline failed to be gone. Nothing watches them: ask again.
    Release,
    /// For its JobSet, whose Pods are gone, to lose the finalizer somebody put on it. Its watch says so.
    Finalizer,
}

impl Waiting {
    /// Whether nothing but asking again, with backoff and with the readings forgotten, will tell.
    #[must_use]
    pub const fn must_ask_again(&self) -> bool {
        matches!(self, Self::Snapshot | Self::Name | Self::Release)
    }
}
