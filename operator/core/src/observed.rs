//! Everything one decision is made on.
//!
//! Most of it comes from watches and is always there. A few things are read directly, only when a
//! plan asks for them, and are remembered as [`Readings`] until the plan they were read for is done:
//! that keeps every ConfigMap, Secret and Pod of the cluster out of the operator's memory and permissions.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trainjob_api::{JobSet, TrainJob};

use crate::{
    build::Runtime,
    facts::{JobFacts, JobSetEnd, JobSetFacts, PerScheduler, PodGroupFacts},
    lifecycle::{
        deadline::{self, Clock},
        hold::{self, News},
    },
    mark::Accounting,
    recreation::Origin,
    running_pods::RunningPods,
    take_over::Comparison,
    text::Text,
};

/// What is known of one TrainJob and of what belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The facts about the TrainJob.
    pub job: &'a JobFacts,
    /// The TrainJob itself, while it is unfinished; `None` also where it has made room for others and is to be read again.
    pub manifest: Option<&'a TrainJob>,
    /// The JobSet of the TrainJob's name, whoever made it.
    pub job_set: Option<&'a JobSetFacts>,
    /// The `PodGroup`s of the TrainJob's name, whoever made them.
    pub pod_groups: PodGroups<'a>,
    /// The runtime that `spec.runtimeRef` names, as it is now.
    pub runtime: KnownRuntime<'a>,
    /// What was read directly.
    pub readings: &'a Readings,
    /// The operator's settings.
    pub settings: &'a Settings,
    /// Whether new Pods are marked, so that they are counted.
    pub accounting: Accounting,
    /// When a suspended JobSet is compared with what the job asks for.
    pub comparison: Comparison,
    /// How much of it is known already.
    pub listed: Listed,
}

#[cfg(test)]
impl<'a> Observed<'a> {
    /// A job of which nothing else is known.
    pub(crate) fn of(job: &'a JobFacts, readings: &'a Readings, settings: &'a Settings) -> Self {
        Self {
            job,
            manifest: None,
            job_set: None,
            pod_groups: PodGroups::default(),
            runtime: KnownRuntime::default(),
            readings,
            settings,
            accounting: Accounting::default(),
            comparison: Comparison::default(),
            listed: Listed::default(),
        }
    }
}

/// What has been listed since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Listed {
    /// At least this TrainJob. What seems not to be there may be listed yet.
    TheJob,
    /// Everything.
    #[default]
    Everything,
}

/// What is known of the runtime that a job names.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum KnownRuntime<'a> {
    /// There is none.
    #[default]
    Absent,
    /// There is one, which has made room for others and is to be read again where it is needed.
    Evicted,
    /// This one.
    There(&'a Runtime),
}

impl<'a> From<Option<&'a Runtime>> for KnownRuntime<'a> {
    fn from(runtime: Option<&'a Runtime>) -> Self {
        runtime.map_or(Self::Absent, Self::There)
    }
}

/// The PodGroup of one name, of each scheduler.
pub type PodGroups<'a> = PerScheduler<Presence<'a>>;

/// Whether there is a PodGroup.
#[derive(Debug, Clone, Copy, Default)]
pub enum Presence<'a> {
    /// The API server does not know the kind, or it is not known yet whether it does.
    #[default]
    NotServed,
    /// There is none.
    Absent,
    /// There is one.
    There(&'a PodGroupFacts),
}

impl<'a> Presence<'a> {
    /// The PodGroup, if there is one.
    #[must_use]
    pub const fn there(self) -> Option<&'a PodGroupFacts> {
        match self {
            Self::There(facts) => Some(facts),
            Self::NotServed | Self::Absent => None,
        }
    }
}

/// What was read directly for a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Readings {
    /// The ConfigMap under the snapshot's name.
    pub snapshot: Reading<ConfigMap>,
    /// The complete JobSet, at least as new as its facts.
    pub job_set: Option<ReadJobSet>,
    /// Whether Pods of the JobSet still run, read after the JobSet was gone.
    pub pods: Reading<RunningPods>,
    /// A Pod that has the label of the JobSet and that [somebody else made](crate::running_pods::Maker::Somebody), found
    /// together with that.
    pub stray_pod: Option<String>,
    /// What the suspended JobSet is known to have been made from (see `Plan::applied_spec_hash`).
    pub applied_spec_hash: Option<u64>,
    /// Whether the TrainJob itself may be gone: its JobSet has vanished, maybe together with it, and the
    /// watches of different kinds are not ordered with each other.
    pub needs_existence_check: bool,
    /// How its own JobSet ended that is gone by now, if that was seen and the job has yet to say so.
    pub ended: Option<Box<JobSetEnd>>,
    /// A child's name that something else has taken.
    pub name_conflict: Option<NameConflict>,
    /// The version in which somebody else changed the spec of the JobSet, if somebody has since it was known what it
    /// was made from.
    pub edited: Option<u64>,
    /// What is known of its hold beside the annotation itself.
    pub hold: News,
    /// Who made it, if that [closed a loop](crate::recreation) and no event of it was recorded yet.
    pub loop_closed_by: Option<Origin>,
}

/// A complete JobSet.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadJobSet {
    /// Its UID.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    /// What it says.
    pub text: Text<JobSet>,
}

impl ReadJobSet {
    /// One that was read.
    ///
    /// # Errors
    ///
    /// One that cannot be written as JSON.
    pub fn of(job_set: &JobSet) -> Result<Self, serde_json::Error> {
        let ObjectMeta { uid, resource_version, .. } = &job_set.metadata;
        Ok(Self {
            uid: uid.clone().unwrap_or_default(),
            resource_version: resource_version.clone().unwrap_or_default(),
            text: Text::of(job_set)?,
        })
    }
}

/// An object that has the name of a child and cannot be it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameConflict {
    /// It is not known to be the job's own.
    Foreign {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A ConfigMap of the job's own that says something else: it was made before the job was changed, by another
    /// version of this operator, or by Kubeflow Trainer.
    Outdated {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// Its version when it was read.
        resource_version: String,
    },
    /// A ConfigMap of the job's own that says something else and is being deleted.
    Terminating {
        /// Its name.
        name: String,
    },
}

/// Something that may have been read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reading<T> {
    /// Not read, or forgotten since.
    #[default]
    NotRead,
    /// Read, and it was not there.
    Absent,
    /// Read.
    Found(T),
}

/// The operator's settings, as far as decisions depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What the deadline is counted from (`lifecycle.deadlineClock`).
    pub deadline_clock: Clock,
    /// How dependents go when a TTL deletes a job (`lifecycle.deletionPropagation`).
    pub deletion_propagation: Propagation,
    /// Whether the TTL also applies to finished jobs that somebody else manages
    /// (`lifecycle.ttlForManagedElsewhere`).
    pub ttl_for_managed_elsewhere: bool,
    /// How long before a deadline users are told that it comes, in seconds (`lifecycle.deadlineWarningSeconds`).
    pub deadline_warning: u32,
    /// How far a hold may reach beyond the TTL, in seconds (`lifecycle.maximumHoldSeconds`).
    pub maximum_hold: u32,
}

impl Default for Settings {
    /// What is configured where nothing is.
    fn default() -> Self {
        Self {
            deadline_clock: Clock::default(),
            deletion_propagation: Propagation::default(),
            ttl_for_managed_elsewhere: false,
            deadline_warning: deadline::DEFAULT_WARNING,
            maximum_hold: hold::DEFAULT_MAXIMUM,
        }
    }
}

/// How the dependents of a deleted object go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
pub enum Propagation {
    /// The object stays visible until they are gone.
    #[default]
    Foreground,
    /// The object goes first.
    Background,
}
