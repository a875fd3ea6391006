//! What one process remembers, as the shell's cache does: the newest of watch and replies.

/// The newest version known of each object: the shell's own code.
#[path = "../../../../operator/src/cache/versions.rs"]
pub mod versions;

use std::{collections::BTreeMap, sync::Arc};

use trainjob_core::{
    facts::ObjectKey,
    observed::{Reading, Readings, Settings},
    runtime::Runtime,
};

use self::versions::Versions;
use super::View;
use crate::objects::{StoredJob, StoredJobSet};

/// Who showed an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A watch, or the list it starts with.
    Watch,
    /// The reply to a request of our own.
    Reply {
        /// How many lists of its kind were complete when it was asked for.
        lists: u64,
    },
}

/// What is remembered of the cluster.
#[derive(Debug, Default)]
pub struct Cache {
    /// The operator's settings.
    pub settings: Settings,
    /// The runtime that all jobs name.
    pub runtime: Option<Arc<Runtime>>,
    jobs: Versions<Arc<StoredJob>>,
    job_sets: Versions<Arc<StoredJobSet>>,
    readings: BTreeMap<ObjectKey, JobReadings>,
}

/// What was read directly for a job; of no use for a successor of the same name.
#[derive(Debug)]
struct JobReadings {
    uid: String,
    readings: Readings,
    /// The version in which somebody else changed the spec of the JobSet, if somebody has since it was
    /// known what it was made from.
    edited: Option<u64>,
}

impl JobReadings {
    /// What still holds of it.
    fn current(&self) -> Readings {
        let mut readings = self.readings.clone();
        if let Some(edited) = self.edited {
            readings.rendered = None;
            readings.job_set = readings.job_set.filter(|job_set| {
                let version = job_set.metadata.resource_version.as_deref();
                versions::parse(version.unwrap_or_default()) >= edited
            });
        }
        readings
    }
}

impl Cache {
    /// What is known of a job; `None` when there is no such job.
    #[must_use]
    pub fn view(&self, key: &ObjectKey) -> Option<View> {
        let job = Arc::clone(self.jobs.get(key)?);
        let readings = self.readings.get(key).filter(|of_job| of_job.uid == job.facts.uid);
        let unfinished = job.facts.finished.is_none() && job.runtime.is_some();
        Some(View {
            job_set: self.job_sets.get(key).cloned(),
            runtime: self.runtime.clone().filter(|_| unfinished),
            readings: readings.map(JobReadings::current).unwrap_or_default(),
            edited: readings.and_then(|of_job| of_job.edited),
            job,
        })
    }

    /// How many lists of TrainJobs, and of JobSets, were complete so far.
    #[must_use]
    pub const fn lists(&self) -> (u64, u64) {
        (self.jobs.lists(), self.job_sets.lists())
    }

    /// Keys of the unfinished jobs, all of which name the one runtime.
    #[must_use]
    pub fn unfinished(&self) -> Vec<ObjectKey> {
        let unfinished = |job: &StoredJob| job.facts.finished.is_none() && job.runtime.is_some();
        let jobs = self.jobs.iter().filter(|(_, job)| unfinished(job));
        let mut keys: Vec<_> = jobs.map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    /// Changes what was read directly for the job with this UID, if there still is one.
    pub fn read(&mut self, key: &ObjectKey, uid: &str, change: impl FnOnce(&mut Readings)) {
        if self.jobs.get(key).is_none_or(|job| job.facts.uid != uid) {
            return;
        }
        change(&mut self.of_job(key, uid).readings);
    }

    fn of_job(&mut self, key: &ObjectKey, uid: &str) -> &mut JobReadings {
        let fresh =
            || JobReadings { uid: uid.to_owned(), readings: Readings::default(), edited: None };
        let of_job = self.readings.entry(key.clone()).or_insert_with(fresh);
        if of_job.uid != uid {
            *of_job = fresh();
        }
        of_job
    }

    /// Takes in that the JobSet is made from inputs with this digest, as far as was known at the time of
    /// `view`: if somebody has changed it since, that is not known.
    pub fn rendered(&mut self, view: &View, digest: u64) {
        let (key, uid) = (&view.job.facts.key, &view.job.facts.uid);
        if self.jobs.get(key).is_none_or(|job| job.facts.uid != *uid) {
            return;
        }
        let of_job = self.of_job(key, uid);
        if of_job.edited.is_none() || of_job.edited == view.edited {
            of_job.edited = None;
            of_job.readings.rendered = Some(digest);
        }
    }

    /// What was read of a JobSet that is gone no longer holds, and its job may be gone with it.
    fn forget_vanished(&mut self, key: &ObjectKey, gone: &StoredJobSet) {
        self.forget_readings_of_job_set(key);
        let Some(owner) = &gone.facts.train_job_uid else { return };
        if self.jobs.get(key).is_some_and(|job| job.facts.finished.is_none()) {
            self.read(key, owner, |readings| readings.in_doubt = true);
        }
    }

    /// Takes in a TrainJob. True when that is news.
    pub fn put_job(&mut self, job: &Arc<StoredJob>, source: Source) -> bool {
        let version = versions::parse(&job.facts.resource_version);
        self.jobs.put(&job.facts.key, version, Arc::clone(job), source)
    }

    /// Takes in that a TrainJob is gone.
    pub fn remove_job(&mut self, key: &ObjectKey, version: u64) -> bool {
        let gone = self.jobs.remove(key, version).is_some();
        if gone {
            self.readings.remove(key);
        }
        gone
    }

    /// Takes in a reply that shows the TrainJob with this UID to be gone.
    pub fn forget_job(&mut self, key: &ObjectKey, uid: &str) {
        if self.jobs.forget(key, |job| job.facts.uid == uid).is_some() {
            self.readings.remove(key);
        }
    }

    /// Takes in a JobSet. True when that is news.
    pub fn put_job_set(
        &mut self,
        key: &ObjectKey,
        job_set: &Arc<StoredJobSet>,
        source: Source,
    ) -> bool {
        let version = versions::parse(&job_set.facts.resource_version);
        let known = self.job_sets.get(key).filter(|known| known.facts.uid == job_set.facts.uid);
        let edited = known.is_some_and(|known| known.facts.generation != job_set.facts.generation);
        let known = known.is_some();
        let news = self.job_sets.put(key, version, Arc::clone(job_set), source);
        if news && !known {
            self.forget_readings_of_job_set(key);
        } else if let Some(of_job) = self.readings.get_mut(key) {
            match source {
                Source::Watch if news && edited => of_job.edited = Some(version),
                Source::Reply { .. } if of_job.edited == Some(version) => of_job.edited = None,
                _ => {}
            }
        }
        news
    }

    /// Takes in that a JobSet is gone.
    pub fn remove_job_set(&mut self, key: &ObjectKey, version: u64) -> bool {
        let gone = self.job_sets.remove(key, version);
        if let Some(gone) = &gone {
            self.forget_vanished(key, gone);
        }
        gone.is_some()
    }

    /// Takes in a reply that shows the JobSet with this UID to be gone.
    pub fn forget_job_set(&mut self, key: &ObjectKey, uid: &str) {
        if let Some(gone) = self.job_sets.forget(key, |job_set| job_set.facts.uid == uid) {
            self.forget_vanished(key, &gone);
        }
    }

    fn forget_readings_of_job_set(&mut self, key: &ObjectKey) {
        if let Some(of_job) = self.readings.get_mut(key) {
            of_job.edited = None;
            of_job.readings.pods = Reading::NotRead;
            of_job.readings.rendered = None;
            of_job.readings.job_set = None;
        }
    }

    /// Complete lists of TrainJobs or JobSets begin.
    pub fn jobs_relist(&mut self) {
        self.jobs.relist();
    }

    /// See [`Self::jobs_relist`].
    pub fn job_sets_relist(&mut self) {
        self.job_sets.relist();
    }

    /// The list is complete; returns the jobs that vanished meanwhile.
    pub fn jobs_listed(&mut self) -> Vec<ObjectKey> {
        let gone = self.jobs.listed().into_iter().map(|(key, _)| key);
        let mut gone: Vec<_> = gone.collect();
        gone.sort();
        for key in &gone {
            self.readings.remove(key);
        }
        gone
    }

    /// The list is complete; returns the JobSets that vanished meanwhile.
    pub fn job_sets_listed(&mut self) -> Vec<ObjectKey> {
        let mut gone = self.job_sets.listed();
        gone.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (key, job_set) in &gone {
            self.forget_vanished(key, job_set);
        }
        gone.into_iter().map(|(key, _)| key).collect()
    }
}
