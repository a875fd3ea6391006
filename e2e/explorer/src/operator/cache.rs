//! What one process remembers, as the shell's cache does: the newest of watch and replies.

use std::{collections::HashSet, sync::Arc};

use trainjob_core::{
    build::Runtime,
    facts::ObjectKey,
    observed::{Listed, Settings},
    pass::{JobMemory, Memories, ShownBy},
    take_over::TakeOver,
};
use trainjob_engine::versions::{self, Source, Versioned, Versions};

use crate::{
    objects::{StoredJob, StoredJobSet},
    view::View,
};

impl Versioned for StoredJob {
    fn version(&self) -> u64 {
        versions::parse(&self.facts.resource_version)
    }
}

impl Versioned for StoredJobSet {
    fn version(&self) -> u64 {
        versions::parse(&self.facts.resource_version)
    }
}

/// What is remembered of the cluster.
#[derive(Debug, Default)]
pub struct Cache {
    /// The operator's settings.
    pub settings: Settings,
    /// The runtime that all jobs name.
    runtime: Option<Arc<Runtime>>,
    /// Whether it has made room for others.
    runtime_evicted: bool,
    jobs: Versions<Arc<StoredJob>>,
    job_sets: Versions<Arc<StoredJobSet>>,
    memories: Memories,
    /// The jobs whose manifests have made room for others.
    evicted: HashSet<ObjectKey>,
    take_over: TakeOver,
}

impl Cache {
    /// What is known of a job; `None` when there is no such job.
    #[must_use]
    pub fn view(&self, key: &ObjectKey) -> Option<View> {
        let job = Arc::clone(self.jobs.get(key)?);
        let unfinished = job.facts.finished.is_none() && job.runtime.is_some();
        let job_set = self.job_sets.get(key).cloned();
        let compare =
            |job_set: &Arc<StoredJobSet>| self.take_over.comparison(&job.facts, &job_set.facts);
        Some(View {
            evicted: self.evicted.contains(key),
            comparison: job_set.as_ref().map(compare).unwrap_or_default(),
            job_set,
            runtime: self.runtime.clone().filter(|_| unfinished),
            runtime_evicted: self.runtime_evicted,
            readings: self.memories.readings(key, &job.facts.uid),
            listed: Listed::Everything,
            job,
        })
    }

    /// From now on its process works.
    pub const fn take_over(&mut self) {
        self.take_over =
            TakeOver { jobs: self.jobs.delivered(), job_sets: self.job_sets.delivered() };
    }

    /// All manifests, and the runtime, make room for others.
    pub fn evict(&mut self) {
        self.evicted = self.jobs.keys().cloned().collect();
        self.runtime_evicted = true;
    }

    /// Takes in the runtime, or that there is none.
    pub fn put_runtime(&mut self, runtime: Option<Arc<Runtime>>) {
        self.runtime = runtime;
        self.runtime_evicted = false;
    }

    /// Takes in a reply that shows the runtime. One that is not known yet is for the watch to show.
    pub fn runtime_read(&mut self, runtime: &Arc<Runtime>) {
        let is_it = self.runtime.as_ref().is_some_and(|known| Arc::ptr_eq(known, runtime));
        self.runtime_evicted &= !is_it;
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

    /// Changes what is remembered of a job: of the one with this UID, if it is named. Of a job that is gone nothing is.
    pub fn remember<T>(
        &mut self,
        key: &ObjectKey,
        uid: Option<&str>,
        change: impl FnOnce(&mut JobMemory) -> T,
    ) -> T {
        let known = self.jobs.get(key).map(|job| &*job.facts.uid);
        self.memories.change_known(key, known, uid, change)
    }

    /// What was read of a JobSet that is gone no longer holds, and its job may be gone with it.
    fn forget_vanished(&mut self, key: &ObjectKey, gone: &StoredJobSet) {
        if let Some(job) = self.jobs.get(key) {
            let (uid, facts) = (&job.facts.uid, &job.facts);
            self.memories.change(key, uid, |memory| memory.job_set_gone(&gone.facts, facts));
        }
    }

    /// Takes in a TrainJob. True when that is news.
    pub fn put_job(&mut self, job: &Arc<StoredJob>, source: Source) -> bool {
        let key = &job.facts.key;
        let before = self.jobs.get(key).cloned();
        let news = self.jobs.put(key, Arc::clone(job), source);
        let known = self.jobs.get(key).map(|known| &known.facts.resource_version);
        if known == Some(&job.facts.resource_version) {
            self.evicted.remove(key);
        }
        if let Some(before) = before.filter(|_| news) {
            self.remember(key, None, |memory| memory.job_shown(&before.facts, &job.facts));
        }
        news
    }

    /// Takes in that a TrainJob is gone.
    pub fn remove_job(&mut self, key: &ObjectKey, version: u64) -> bool {
        let gone = self.jobs.remove(key, version).is_some();
        if gone {
            self.memories.forget(key);
        }
        gone
    }

    /// Takes in a reply that shows the TrainJob with this UID to be gone.
    pub fn forget_job(&mut self, key: &ObjectKey, uid: &str) {
        if self.jobs.forget(key, |job| job.facts.uid == uid).is_some() {
            self.memories.forget(key);
        }
    }

    /// Takes in a JobSet. True when that is news.
    pub fn put_job_set(
        &mut self,
        key: &ObjectKey,
        job_set: &Arc<StoredJobSet>,
        source: Source,
    ) -> bool {
        let before = self.job_sets.get(key).cloned();
        let news = self.job_sets.put(key, Arc::clone(job_set), source);
        let by = match source {
            Source::Watch => ShownBy::Watch,
            Source::Reply { .. } => ShownBy::Reply,
        };
        let before = before.as_ref().map(|before| &before.facts);
        self.remember(key, None, |memory| {
            memory.job_set_shown(before, &job_set.facts, news, by);
        });
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
            self.memories.forget(key);
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
