//! The API server, as far as the operator can tell: versions, watches, preconditions, deletion.
//!
//! It numbers all changes, keeps for every kind the sequence that watches deliver, and refuses what the
//! real one refuses. Other files of this module let it [serve](requests) the operator's requests and
//! [judge](judge) each where it takes effect, let [others](others) change things, and write what
//! happened down as a [history](record).

pub mod judge;
pub mod others;
pub mod record;
pub mod requests;

use std::{collections::BTreeSet, sync::Arc};

use invariants::{History, Millis};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use trainjob_api::{JobSet, TrainJob, time::Timestamp};
use trainjob_core::{
    build::Runtime,
    facts::{ObjectKey, controlling_train_job},
    observed::{Propagation, Settings},
};

use crate::{
    objects::{FOREGROUND, StoredJob, StoredJobSet, add_finalizer, has_finalizer},
    rule::Rule,
    violation::Violation,
};

/// The time at which every schedule begins.
pub const START: Millis = 1_800_000_000_000;

/// A change of an object, as a watch delivers it.
#[derive(Debug)]
pub struct News<T> {
    /// The object after the change, or as it was last.
    pub object: Arc<T>,
    /// The version of its removal, if it is gone.
    pub gone: Option<u64>,
}

/// Everything of one TrainJob's name.
#[derive(Debug)]
pub struct Slot {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The TrainJob.
    pub job: Option<Arc<StoredJob>>,
    /// The JobSet.
    pub job_set: Option<Arc<StoredJobSet>>,
    /// The ConfigMap under the snapshot's name.
    pub snapshot: Option<ConfigMap>,
    /// UIDs of the JobSets of which a Pod runs.
    pub pods: Vec<String>,
    /// Every runtime that was ever frozen here, with the UID of the job it was frozen for.
    pub frozen: Vec<(String, Runtime)>,
}

impl Slot {
    /// The JobSet, if the job with this UID is its controller.
    #[must_use]
    pub fn job_set_of(&self, job_uid: &str) -> Option<&Arc<StoredJobSet>> {
        let own =
            |job_set: &&Arc<StoredJobSet>| job_set.facts.train_job_uid.as_deref() == Some(job_uid);
        self.job_set.as_ref().filter(own)
    }
}

/// What is stored, and how it came to be.
#[derive(Debug)]
pub struct Server {
    /// The time.
    pub now: Millis,
    /// The operators' settings.
    pub settings: Settings,
    /// The objects of each name.
    pub slots: Vec<Slot>,
    /// The runtime that all jobs name.
    pub runtime: Option<Arc<Runtime>>,
    /// What the watch of TrainJobs delivers.
    pub jobs: Vec<News<StoredJob>>,
    /// What the watch of JobSets delivers.
    pub job_sets: Vec<News<StoredJobSet>>,
    /// What the watch of runtimes delivers.
    pub runtimes: Vec<Option<Arc<Runtime>>>,
    /// How many changes there were.
    pub revision: u64,
    /// Whether nobody but the operator that acts has changed what its JobSets are made from: another
    /// operator, or a late request of one that was killed. It remembers what it made, and does not look.
    pub alone: bool,
    /// UIDs of the finished jobs whose hold was changed or removed.
    pub changed_holds: BTreeSet<String>,
    /// What happened.
    pub history: History,
    /// The first rule that was broken.
    pub violation: Option<Violation<Rule>>,
    uids: u64,
}

impl Server {
    /// An empty cluster with room for jobs of so many names.
    #[must_use]
    pub fn new(names: usize, settings: Settings) -> Self {
        let slot = |number: usize| Slot {
            key: ObjectKey::new("ns", format!("job-{number}")),
            job: None,
            job_set: None,
            snapshot: None,
            pods: Vec::new(),
            frozen: Vec::new(),
        };
        Self {
            now: START,
            settings,
            slots: (0..names).map(slot).collect(),
            runtime: None,
            jobs: Vec::new(),
            job_sets: Vec::new(),
            runtimes: Vec::new(),
            revision: 0,
            alone: true,
            changed_holds: BTreeSet::new(),
            history: History::default(),
            violation: None,
            uids: 0,
        }
    }

    /// The time in whole seconds.
    #[must_use]
    pub const fn second(&self) -> Timestamp {
        Timestamp(self.now.div_euclid(1_000))
    }

    /// Notes that a rule was broken, if it is the first.
    pub fn broke(&mut self, rule: Rule, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { rule, what: what() });
        }
    }

    /// Notes that a rule was broken unless it `holds`.
    pub fn expect(&mut self, rule: Rule, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broke(rule, what);
        }
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn new_uid(&mut self, kind: &str) -> String {
        self.uids += 1;
        format!("{kind}-{}", self.uids)
    }

    /// Stores a new TrainJob, if there is none of its name.
    pub fn create_job(&mut self, name: usize, mut job: TrainJob) {
        if self.slots.get(name).is_none_or(|slot| slot.job.is_some()) {
            return;
        }
        job.metadata.uid = Some(self.new_uid("job"));
        job.metadata.generation = Some(1);
        self.store_job(name, job);
    }

    fn store_job(&mut self, name: usize, mut job: TrainJob) {
        let revision = self.next_revision();
        job.metadata.resource_version = Some(revision.to_string());
        let stored = Arc::new(StoredJob::of(job));
        self.record_job(revision, &stored, false);
        self.jobs.push(News { object: Arc::clone(&stored), gone: None });
        if let Some(slot) = self.slots.get_mut(name) {
            slot.job = Some(stored);
        }
    }

    /// Makes a change of a stored job, unless it changes nothing. True when it did.
    pub fn edit_job(&mut self, name: usize, edit: impl FnOnce(&mut TrainJob)) -> bool {
        let Some(before) = self.slots.get(name).and_then(|slot| slot.job.clone()) else {
            return false;
        };
        let mut job = before.manifest.clone();
        edit(&mut job);
        if job == before.manifest {
            return false;
        }
        if job.spec != before.manifest.spec {
            job.metadata.generation = job.metadata.generation.map(|generation| generation + 1);
        }
        if doomed(&job.metadata) {
            self.drop_job(name);
        } else {
            self.store_job(name, job);
        }
        true
    }

    fn drop_job(&mut self, name: usize) {
        let Some(gone) = self.slots.get_mut(name).and_then(|slot| slot.job.take()) else { return };
        let revision = self.next_revision();
        self.record_job(revision, &gone, true);
        self.jobs.push(News { object: gone, gone: Some(revision) });
    }

    /// Begins the deletion of a job.
    pub fn delete_job(&mut self, name: usize, propagation: Propagation) {
        let now = self.second();
        self.edit_job(name, |job| {
            if job.metadata.deletion_timestamp.is_some() {
                return;
            }
            job.metadata.deletion_timestamp = Some(now.into());
            if propagation == Propagation::Foreground {
                add_finalizer(&mut job.metadata, FOREGROUND);
            }
        });
    }

    /// Stores a new JobSet, if there is none of its name.
    pub fn create_job_set(&mut self, name: usize, mut job_set: JobSet) {
        if self.slots.get(name).is_none_or(|slot| slot.job_set.is_some()) {
            return;
        }
        job_set.metadata.uid = Some(self.new_uid("jobset"));
        job_set.metadata.generation = Some(1);
        job_set.metadata.creation_timestamp = Some(self.second().into());
        self.store_job_set(name, job_set);
    }

    fn store_job_set(&mut self, name: usize, mut job_set: JobSet) {
        let revision = self.next_revision();
        job_set.metadata.resource_version = Some(revision.to_string());
        let stored = Arc::new(StoredJobSet::of(job_set));
        self.record_job_set(revision, &stored, false);
        self.job_sets.push(News { object: Arc::clone(&stored), gone: None });
        if let Some(slot) = self.slots.get_mut(name) {
            slot.job_set = Some(stored);
        }
    }

    /// Makes a change of a stored JobSet, unless it changes nothing. True when it did.
    pub fn edit_job_set(&mut self, name: usize, edit: impl FnOnce(&mut JobSet)) -> bool {
        let Some(before) = self.slots.get(name).and_then(|slot| slot.job_set.clone()) else {
            return false;
        };
        let mut job_set = before.object.clone();
        edit(&mut job_set);
        if job_set == before.object {
            return false;
        }
        if job_set.spec != before.object.spec {
            let generation = before.object.metadata.generation;
            job_set.metadata.generation = generation.map(|generation| generation + 1);
        }
        if doomed(&job_set.metadata) {
            self.drop_job_set(name);
        } else {
            self.store_job_set(name, job_set);
        }
        true
    }

    /// A JobSet goes at once, perhaps before its Pods.
    pub fn drop_job_set(&mut self, name: usize) {
        let Some(gone) = self.slots.get_mut(name).and_then(|slot| slot.job_set.take()) else {
            return;
        };
        let revision = self.next_revision();
        self.record_job_set(revision, &gone, true);
        self.job_sets.push(News { object: gone, gone: Some(revision) });
    }

    /// Begins the deletion of a JobSet in the foreground.
    pub fn delete_job_set(&mut self, name: usize) {
        let now = self.second();
        self.edit_job_set(name, |job_set| {
            if job_set.metadata.deletion_timestamp.is_none() {
                job_set.metadata.deletion_timestamp = Some(now.into());
                add_finalizer(&mut job_set.metadata, FOREGROUND);
            }
        });
    }

    /// Stores a runtime, another version of it, or that there is none.
    pub fn set_runtime(&mut self, runtime: Option<Runtime>) {
        self.next_revision();
        self.runtime = runtime.map(Arc::new);
        self.runtimes.push(self.runtime.clone());
    }

    /// Stores or removes the ConfigMap under the snapshot's name.
    pub fn set_snapshot(&mut self, name: usize, config_map: Option<ConfigMap>) {
        let revision = self.next_revision();
        let Some(slot) = self.slots.get_mut(name) else { return };
        let gone = config_map.is_none();
        let before = std::mem::replace(&mut slot.snapshot, config_map);
        if let Some(of) = self.slots.get(name).and_then(|slot| slot.snapshot.clone()).or(before) {
            self.record_snapshot(revision, &of, gone);
        }
    }

    /// Whether the job that controls an object, if one does, is gone.
    fn is_orphan(&self, metadata: &ObjectMeta) -> bool {
        let Some(owner) = controlling_train_job(metadata) else { return false };
        let mut jobs = self.slots.iter().filter_map(|slot| slot.job.as_ref());
        !jobs.any(|job| job.facts.uid == owner.uid)
    }
}

/// Whether an object goes as soon as it is stored so.
fn doomed(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() && metadata.finalizers.iter().flatten().next().is_none()
}

/// Whether an object waits for its dependents to be gone.
pub(crate) fn waits_for_dependents(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() && has_finalizer(metadata, FOREGROUND)
}
