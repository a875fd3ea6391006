//! The facts about a `PodGroup`, and the schedulers that know one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use trainjob_api::podgroup::{CoschedulingPodGroupSpec, VolcanoPodGroupSpec};

use super::owner::controlling_train_job;

/// The facts about a `PodGroup`.
#[derive(Debug, Clone, PartialEq)]
pub struct PodGroupFacts {
    /// The UID.
    pub uid: String,
    /// The version these facts were read from.
    pub resource_version: String,
    /// UID of the TrainJob that is its controller, if one is.
    pub train_job_uid: Option<String>,
    /// Whether it has a `deletionTimestamp`.
    pub terminating: bool,
    /// What it asks for.
    pub spec: PodGroupSpec,
}

/// A scheduler that knows `PodGroup`s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// The coscheduling plugin of scheduler-plugins.
    Coscheduling,
    /// Volcano.
    Volcano,
}

/// What a `PodGroup` asks for, of which scheduler.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PodGroupSpec {
    /// Of the coscheduling plugin of scheduler-plugins.
    Coscheduling(CoschedulingPodGroupSpec),
    /// Of Volcano.
    Volcano(VolcanoPodGroupSpec),
}

impl Scheduler {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Coscheduling, Self::Volcano];
}

impl PodGroupSpec {
    /// Of whom it is asked.
    #[must_use]
    pub const fn scheduler(&self) -> Scheduler {
        match self {
            Self::Coscheduling(_) => Scheduler::Coscheduling,
            Self::Volcano(_) => Scheduler::Volcano,
        }
    }
}

impl PodGroupFacts {
    /// The facts in a stored `PodGroup`.
    #[must_use]
    pub fn of(metadata: &ObjectMeta, spec: PodGroupSpec) -> Self {
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            train_job_uid: controlling_train_job(metadata).map(|owner| owner.uid.clone()),
            terminating: metadata.deletion_timestamp.is_some(),
            spec,
        }
    }
}

/// Something that there is once for each scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerScheduler<T> {
    /// That of [`Scheduler::Coscheduling`].
    pub coscheduling: T,
    /// That of [`Scheduler::Volcano`].
    pub volcano: T,
}

impl<T> PerScheduler<T> {
    /// What `of` makes for each.
    pub fn from_fn(mut of: impl FnMut(Scheduler) -> T) -> Self {
        Self { coscheduling: of(Scheduler::Coscheduling), volcano: of(Scheduler::Volcano) }
    }

    /// That of one scheduler.
    pub const fn of(&self, scheduler: Scheduler) -> &T {
        match scheduler {
            Scheduler::Coscheduling => &self.coscheduling,
            Scheduler::Volcano => &self.volcano,
        }
    }

    /// That of one scheduler, to be changed.
    pub const fn of_mut(&mut self, scheduler: Scheduler) -> &mut T {
        match scheduler {
            Scheduler::Coscheduling => &mut self.coscheduling,
            Scheduler::Volcano => &mut self.volcano,
        }
    }

    /// Another thing for each.
    pub fn map<'a, U>(&'a self, mut to: impl FnMut(&'a T) -> U) -> PerScheduler<U> {
        PerScheduler::from_fn(|scheduler| to(self.of(scheduler)))
    }
}
