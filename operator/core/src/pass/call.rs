//! The requests of a pass, and what comes back.

use k8s_openapi::api::core::v1::ConfigMap;

use crate::{
    action::Action,
    facts::JobSetFacts,
    observed::{ReadJobSet, Reading},
    running_pods::PodCheck,
};

/// One request to the API server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Call<'a> {
    /// What the plan says.
    Act(&'a Action),
    /// What this action would create is there already: read it. Instead of a Secret, which nobody may read, the
    /// witness of its [probe](Action::ProbeSecret) is read.
    Inspect(&'a Action),
}

/// What came back of a call that succeeded.
///
/// Objects that are watched are also shown to the driver's cache, which plans are made on.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Nothing that matters here.
    Done,
    /// The TrainJob of this UID exists.
    TrainJob(String),
    /// The ConfigMap that was asked for.
    ConfigMap(Box<Reading<ConfigMap>>),
    /// The complete JobSet.
    JobSet(ReadJobSet),
    /// The JobSet that has the job's name, if there still is one.
    JobSetOfName(Option<Box<JobSetFacts>>),
    /// Which Pods of the JobSet run.
    Pods(PodCheck),
    /// The answer to a check for Pods takes longer than work waits. It will be a
    /// [late one](super::JobMemory::late_answer).
    Later,
}
