//! A cluster in memory: the objects of one TrainJob's name, changed as an API server lets them change.
//!
//! Every request of the operator is checked where it takes effect, against what is stored then: a stale
//! decision may be made, but it may do no harm.

mod requests;

use std::{collections::BTreeMap, fmt, mem};

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time},
};
use serde::Serialize;
use serde_json::Value;
use trainjob_api::{
    JobSet, TrainJob,
    constants::{MANAGED_BY, MULTIKUEUE_ORIGIN_LABEL},
    time::Timestamp,
};
use trainjob_core::{
    build::{Runtime, snapshot},
    facts::controlling_train_job,
    lifecycle::deadline::Clock,
    observed::{Propagation, Settings},
    running_pods::{Cause, PodCheck, RunningPod, RunningPods},
};

/// A finalizer that somebody else put on an object.
pub(crate) const KEPT: &str = "example.com/keep";

/// Why a request has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Conflict,
    Exists,
    NotFound,
    /// A fault on the way there or back: the operator cannot know whether it had an effect.
    Broken,
}

/// What goes wrong with the operator's next change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not arrive.
    Lost,
    /// It takes effect, but the reply does not arrive.
    ReplyLost,
}

/// What is stored.
#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) now: Timestamp,
    pub(crate) job: Option<TrainJob>,
    pub(crate) job_set: Option<JobSet>,
    pub(crate) snapshot: Option<ConfigMap>,
    pub(crate) runtime: Option<Runtime>,
    /// Running Pods by the UID of their JobSet.
    pub(crate) pods: BTreeMap<String, usize>,
    pub(crate) settings: Settings,
    /// The JobSets that are gone, as they were last: a watch delivers each.
    pub(crate) job_sets_gone: Vec<JobSet>,
    /// Counts every change.
    pub(crate) version: u64,
    pub(crate) fault: Option<Fault>,
    job_set_counter: usize,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { now, job, job_set, snapshot, pods, version, .. } = self;
        write!(f, "version {version} at {}: job {}, ", now.0, brief(job))?;
        write!(f, "JobSet {}, snapshot {}, Pods {pods:?}", brief(job_set), brief(snapshot))
    }
}

/// An object as people like to see it.
pub(crate) fn brief(object: &impl Serialize) -> String {
    serde_json::to_string(object).unwrap()
}

impl Cluster {
    /// A cluster without objects.
    pub(crate) fn new(now: Timestamp, settings: Settings) -> Self {
        Self { now, settings, ..Self::default() }
    }

    /// A new version, for an object that changes.
    pub(crate) fn bump(&mut self, metadata: fn(&mut Self) -> Option<&mut ObjectMeta>) {
        self.version += 1;
        let version = self.version.to_string();
        if let Some(metadata) = metadata(self) {
            metadata.resource_version = Some(version);
        }
    }

    /// Makes a change of a stored job, unless it changes nothing.
    pub(crate) fn edit_job(&mut self, edit: impl FnOnce(&mut TrainJob)) {
        let Some(job) = &mut self.job else { return };
        let before = job.clone();
        edit(job);
        if *job != before {
            self.bump(|cluster| cluster.job.as_mut().map(|job| &mut job.metadata));
        }
    }

    /// Makes a change of a stored JobSet, unless it changes nothing.
    pub(crate) fn edit_job_set(&mut self, edit: impl FnOnce(&mut JobSet)) {
        let Some(job_set) = &mut self.job_set else { return };
        let before = job_set.clone();
        edit(job_set);
        if *job_set != before {
            if job_set.spec != before.spec {
                let generation = before.metadata.generation.unwrap_or_default();
                job_set.metadata.generation = Some(generation + 1);
            }
            self.bump(|cluster| cluster.job_set.as_mut().map(|job_set| &mut job_set.metadata));
        }
        self.run_pods();
    }

    /// Stores a JobSet as it was created now.
    pub(crate) fn add_job_set(&mut self, mut job_set: JobSet) {
        self.job_set_counter += 1;
        job_set.metadata.uid = Some(format!("jobset-{}", self.job_set_counter));
        job_set.metadata.generation = Some(1);
        job_set.metadata.creation_timestamp.get_or_insert_with(|| self.now.into());
        self.job_set = Some(job_set);
        self.bump(|cluster| cluster.job_set.as_mut().map(|job_set| &mut job_set.metadata));
        self.run_pods();
    }

    /// JobSet's controller: a JobSet that may run has Pods.
    fn run_pods(&mut self) {
        let Some(job_set) = &self.job_set else { return };
        let ended = job_set.status.iter().flat_map(|status| &status.conditions).any(|condition| {
            condition.status == "True" && ["Completed", "Failed"].contains(&&*condition.type_)
        });
        let runs = job_set.spec.suspend != Some(true)
            && job_set.metadata.deletion_timestamp.is_none()
            && !ended;
        if runs {
            self.pods.insert(uid(&job_set.metadata), 2);
        }
    }

    /// Pods end, but for those of a JobSet that still runs.
    pub(crate) fn end_pods(&mut self) {
        let before = mem::take(&mut self.pods);
        self.run_pods();
        self.version += u64::from(self.pods != before);
    }

    /// Begins the deletion of the JobSet.
    pub(crate) fn delete_job_set_of_anybody(&mut self) {
        let now = self.now;
        self.edit_job_set(|job_set| {
            job_set.metadata.deletion_timestamp.get_or_insert_with(|| now.into());
        });
    }

    /// The JobSet goes at once, perhaps before its Pods.
    pub(crate) fn drop_job_set(&mut self) {
        if let Some(gone) = self.job_set.take() {
            self.job_sets_gone.push(gone);
            self.version += 1;
        }
    }

    /// Begins the deletion of the job.
    pub(crate) fn delete_job(&mut self, propagation: Propagation) {
        let now = self.now;
        self.edit_job(|job| {
            if propagation == Propagation::Foreground && job.metadata.deletion_timestamp.is_none() {
                let finalizers = job.metadata.finalizers.get_or_insert_default();
                finalizers.push("foregroundDeletion".into());
            }
            job.metadata.deletion_timestamp.get_or_insert_with(|| now.into());
        });
        self.drop_job_if_free();
    }

    /// The garbage collector, once around.
    pub(crate) fn collect_garbage(&mut self) {
        let job = self.job.as_ref();
        let foreground = job.is_some_and(|job| has_finalizer(&job.metadata, "foregroundDeletion"));
        let doomed = |metadata: &ObjectMeta| {
            controlling_train_job(metadata).is_some_and(|owner| {
                foreground || job.and_then(|job| job.metadata.uid.as_ref()) != Some(&owner.uid)
            })
        };
        let (job_set, snapshot) = (self.job_set.as_ref(), self.snapshot.as_ref());
        let job_set_doomed = job_set.is_some_and(|job_set| doomed(&job_set.metadata));
        if snapshot.is_some_and(|snapshot| doomed(&snapshot.metadata)) {
            self.snapshot = None;
        }
        if job_set_doomed {
            self.delete_job_set_of_anybody();
        }
        if let Some(JobSet { metadata, .. }) = &self.job_set
            && metadata.deletion_timestamp.is_some()
            && !has_finalizer(metadata, KEPT)
            && !self.pods.contains_key(&uid(metadata))
        {
            self.drop_job_set();
        }
        let owned = self.job_set.as_ref().is_some_and(|job_set| self.owns(&job_set.metadata));
        if foreground && !owned {
            self.edit_job(|job| {
                let finalizers = job.metadata.finalizers.get_or_insert_default();
                finalizers.retain(|finalizer| finalizer != "foregroundDeletion");
            });
        }
        self.drop_job_if_free();
    }

    fn drop_job_if_free(&mut self) {
        let free = |job: &TrainJob| {
            job.metadata.deletion_timestamp.is_some()
                && job.metadata.finalizers.iter().flatten().next().is_none()
        };
        if self.job.as_ref().is_some_and(free) {
            self.job = None;
            self.version += 1;
        }
    }

    /// The versions of the job and of the JobSet.
    pub(crate) fn versions(&self) -> [Option<String>; 2] {
        let job = self.job.as_ref().map(|job| &job.metadata);
        let job_set = self.job_set.as_ref().map(|job_set| &job_set.metadata);
        [job, job_set].map(|metadata| metadata?.resource_version.clone())
    }

    /// Whether the stored job is the controller of an object.
    pub(crate) fn owns(&self, metadata: &ObjectMeta) -> bool {
        let job = self.job.as_ref().and_then(|job| job.metadata.uid.as_ref());
        controlling_train_job(metadata).is_some_and(|owner| Some(&owner.uid) == job)
    }

    /// The runtime in the stored snapshot, if it is of use for `job`.
    pub(crate) fn frozen_for(&self, job: &TrainJob) -> Option<Runtime> {
        snapshot::read(job, self.snapshot.as_ref()?).ok()
    }

    /// The running Pods, but for those of one JobSet.
    pub(crate) fn check_pods(&self, except: Option<&str>, name_them: bool) -> PodCheck {
        let mut counted = self.pods.keys().filter(|uid| Some(&***uid) != except);
        // Its text never changes, because a changed one is written later.
        let pod = || RunningPod {
            name: "pod".into(),
            node: None,
            since: Timestamp(0),
            cause: Cause::NotDeleted,
        };
        let running = counted.next().map(|_| {
            let named = name_them.then(pod).into_iter().collect();
            RunningPods { named, more: true }
        });
        PodCheck { running, stray: None }
    }
}

pub(crate) fn uid(metadata: &ObjectMeta) -> String {
    metadata.uid.clone().unwrap_or_default()
}

fn has_finalizer(metadata: &ObjectMeta, name: &str) -> bool {
    metadata.finalizers.iter().flatten().any(|finalizer| finalizer == name)
}

pub(crate) fn created_at(job_set: &JobSet) -> Timestamp {
    Timestamp::from(job_set.metadata.creation_timestamp.as_ref().unwrap())
}

/// The meaning of a stored job, said once more and in other words than the core's.
pub(crate) fn conditions(job: &TrainJob) -> &[Condition] {
    job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

pub(crate) fn is_ours(job: &TrainJob) -> bool {
    job.spec.managed_by.as_deref().unwrap_or(MANAGED_BY) == MANAGED_BY
}

fn is_terminal(condition: &Condition) -> bool {
    condition.status == "True" && ["Complete", "Failed"].contains(&&*condition.type_)
}

pub(crate) fn at(condition: &Condition) -> Timestamp {
    Timestamp::from(&condition.last_transition_time)
}

/// The condition that ended a job.
pub(crate) fn terminal(job: &TrainJob) -> Option<&Condition> {
    let mut first = None;
    for condition in conditions(job).iter().filter(|condition| is_terminal(condition)) {
        if first.is_none_or(|first| at(condition) < at(first)) {
            first = Some(condition);
        }
    }
    first
}

/// When the deadline of an unfinished job is due: in seconds without bounds.
pub(crate) fn deadline_due(job: &TrainJob, clock: Clock) -> Option<i128> {
    let seconds = job.spec.active_deadline_seconds.filter(|seconds| *seconds > 0)?;
    let created = Timestamp::from(job.metadata.creation_timestamp.as_ref().unwrap());
    let suspended = conditions(job).iter().find(|condition| condition.type_ == "Suspended");
    let start = match (clock, job.spec.suspend == Some(true), suspended) {
        (Clock::Creation, ..) | (Clock::LastResume, false, None) => created,
        (Clock::LastResume, true, _) => return None,
        (Clock::LastResume, false, Some(condition)) if condition.status == "True" => return None,
        (Clock::LastResume, false, Some(condition)) => at(condition),
    };
    let due = i128::from(start.0) + i128::from(seconds);
    (due < i128::from(i64::MAX)).then_some(due)
}

/// When the TTL of a job is due, if it has one that applies to it.
pub(crate) fn ttl_due(job: &TrainJob, settings: Settings) -> Option<i128> {
    let exempt = !(is_ours(job) || settings.ttl_for_managed_elsewhere)
        || job.metadata.deletion_timestamp.is_some()
        || job.metadata.labels.iter().flatten().any(|(name, _)| name == MULTIKUEUE_ORIGIN_LABEL);
    let seconds = job.spec.ttl_seconds_after_finished.filter(|seconds| *seconds >= 0)?;
    let finished = at(terminal(job)?);
    let passed = i128::from(finished.0) + i128::from(seconds);
    (!exempt).then(|| passed.max(hold_end(job, passed + i128::from(settings.maximum_hold))))
}

/// When the hold of a job ends, at the latest.
fn hold_end(job: &TrainJob, latest: i128) -> i128 {
    let Some(text) = job.metadata.annotations.iter().flatten().find_map(|(name, text)| {
        (name == "lifecycle.trainjob.dev/hold-until").then(|| Value::from(text.as_str()))
    }) else {
        return i128::MIN;
    };
    let named = serde_json::from_value(text).map(|time: Time| i128::from(Timestamp::from(&time).0));
    named.map_or(latest, |named| named.min(latest))
}
