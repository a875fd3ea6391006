//! What the operator remembers of the cluster.
//!
//! One record for each TrainJob, JobSet and runtime, kept up to date by [watches](watch) and by the
//! replies to the operator's own writes, whichever is newer ([`versions`]). So a key is never planned
//! on something older than the operator's last write to it.
//!
//! A record holds the facts that decisions need, `packed`; a TrainJob itself is kept only while it is unfinished, and what a
//! runtime says, as far as they find room (`manifests`).

mod count;
mod groups;
mod jobs;
mod kept_runtimes;
mod manifests;
mod named_runtimes;
mod packed;
mod pod_groups;
mod record;
mod runtimes;
pub mod view;
pub mod watch;

use std::sync::{Mutex, MutexGuard, PoisonError};

use trainjob_core::{
    facts::{JobFacts, JobSetFacts, Namespaces, ObjectKey, PerScheduler, Scheduler},
    needs_nothing::needs_nothing,
    observed::Reading,
    pass::{JobMemory, Memories, ShownBy},
    recreation::Recreations,
    running_pods::RunningPods,
    take_over::TakeOver,
};
use trainjob_engine::versions::{self, Source, Versions};

pub use self::record::JobRecord;
use self::{
    groups::Groups,
    kept_runtimes::KeptRuntimes,
    manifests::Manifests,
    named_runtimes::NamedRuntimes,
    packed::{PackedJob, PackedJobSet},
};

/// What the cluster looks like; shared by watches and workers.
#[derive(Debug)]
pub struct Cache {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    jobs: Versions<PackedJob>,
    job_sets: Versions<PackedJobSet>,
    runtimes: KeptRuntimes,
    named_runtimes: NamedRuntimes,
    namespaces: Namespaces,
    manifests: Manifests,
    memories: Memories,
    recreations: Recreations,
    pod_groups: PerScheduler<Option<Groups>>,
    take_over: TakeOver,
}

impl Cache {
    /// One that knows nothing yet, with room for so many bytes of manifests of TrainJobs and runtimes.
    #[must_use]
    pub fn new(manifest_budget: usize) -> Self {
        Self { state: Mutex::new(State::new(manifest_budget)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks something of what is known of a job: its facts, the JobSet of its name, and whether Pods of it run.
    #[must_use]
    pub fn with_job<T>(
        &self,
        key: &ObjectKey,
        ask: impl FnOnce(&JobFacts, Option<&JobSetFacts>, &Reading<RunningPods>) -> T,
    ) -> Option<T> {
        let state = self.lock();
        let facts = state.job(key)?.facts;
        let pods = state.pods(key, &facts.uid);
        Some(ask(&facts, state.job_set(key).as_ref(), pods))
    }

    /// Whether a job [needs nothing](needs_nothing) any more; false when there is no such job.
    #[must_use]
    pub fn needs_nothing(&self, key: &ObjectKey) -> bool {
        let state = self.lock();
        let grouped =
            state.pod_groups.map(|it| it.as_ref().is_some_and(|it| it.get(key).is_some()));
        let has_children = Scheduler::ALL.into_iter().any(|it| *grouped.of(it))
            || state.job_sets.get(key).is_some();
        state.job(key).is_some_and(|job| needs_nothing(&job.facts, has_children))
    }

    /// Keys of all jobs of whose Pods no answer is awaited. One comes back when that is there.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        let state = self.lock();
        state.jobs.keys().filter(|key| !state.awaits_pods(key)).cloned().collect()
    }

    /// Whether an answer about the Pods of a job is awaited.
    #[must_use]
    pub fn awaits_pods(&self, key: &ObjectKey) -> bool {
        self.lock().awaits_pods(key)
    }

    /// From now on there is somebody who works, and who has not seen what was compared before.
    pub fn take_over(&self) {
        let mut state = self.lock();
        state.take_over =
            TakeOver { jobs: state.jobs.delivered(), job_sets: state.job_sets.delivered() };
    }

    /// Changes what is remembered of a job: of the one with this UID, if it is named. Of a job that is gone nothing is.
    pub fn remember<T>(
        &self,
        key: &ObjectKey,
        uid: Option<&str>,
        change: impl FnOnce(&mut JobMemory) -> T,
    ) -> T {
        self.lock().remember(key, uid, change)
    }

    /// How many lists were complete so far.
    #[must_use]
    pub fn lists(&self) -> Lists {
        let state = self.lock();
        Lists {
            jobs: state.jobs.lists(),
            job_sets: state.job_sets.lists(),
            pod_groups: state.pod_groups.map(|it| it.as_ref().map_or(0, Versions::lists)),
        }
    }

    /// Takes in a JobSet that a watch or a reply showed. When that is news, returns its key, as it is kept.
    pub fn put_job_set(
        &self,
        key: &ObjectKey,
        job_set: &JobSetFacts,
        source: Source,
    ) -> Option<ObjectKey> {
        let mut state = self.lock();
        let key = state.key(key);
        let before = state.job_set(&key);
        let news = state.job_sets.put(&key, PackedJobSet::of(job_set), source);
        state.remember(&key, None, |memory| {
            memory.job_set_shown(before.as_ref(), job_set, news, shown_by(source));
        });
        news.then_some(key)
    }

    /// Takes in that a JobSet is gone. What was known of its Pods and of what it was made from no
    /// longer holds.
    pub fn remove_job_set(&self, key: &ObjectKey, resource_version: &str) -> bool {
        let mut state = self.lock();
        let gone = state.job_sets.remove(key, versions::parse(resource_version));
        state.forget_job_set(key, gone.as_ref());
        gone.is_some()
    }

    /// Takes in a reply that shows the JobSet with this UID to be gone.
    pub fn forget_job_set(&self, key: &ObjectKey, uid: &str) {
        let mut state = self.lock();
        let gone = state.job_sets.forget(key, |job_set| job_set.facts().uid == uid);
        state.forget_job_set(key, gone.as_ref());
    }

    /// A complete list of JobSets begins.
    pub fn job_sets_relist(&self) {
        self.lock().job_sets.relist();
    }

    /// The list is complete; returns the JobSets that vanished meanwhile.
    pub fn job_sets_listed(&self) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let vanished = state.job_sets.listed();
        state.note_restore();
        for (key, job_set) in &vanished {
            state.forget_job_set(key, Some(job_set));
        }
        vanished.into_iter().map(|(key, _)| key).collect()
    }
}

impl State {
    fn new(manifest_budget: usize) -> Self {
        Self {
            jobs: Versions::default(),
            job_sets: Versions::default(),
            runtimes: KeptRuntimes::default(),
            named_runtimes: NamedRuntimes::default(),
            namespaces: Namespaces::default(),
            manifests: Manifests::new(manifest_budget),
            memories: Memories::default(),
            recreations: Recreations::default(),
            pod_groups: PerScheduler::default(),
            take_over: TakeOver::default(),
        }
    }

    fn job(&self, key: &ObjectKey) -> Option<JobRecord> {
        self.jobs.get(key).map(|job| job.record(key, &self.named_runtimes))
    }

    /// The UID of a job: in a fraction of the time that all of it takes.
    fn uid(&self, key: &ObjectKey) -> Option<String> {
        self.jobs.get(key).map(PackedJob::uid)
    }

    fn job_set(&self, key: &ObjectKey) -> Option<JobSetFacts> {
        self.job_sets.get(key).map(PackedJobSet::facts)
    }

    /// The one copy of a key, which a job and its JobSet have in common.
    fn key(&mut self, key: &ObjectKey) -> ObjectKey {
        if let Some(known) = self.jobs.key(key).or_else(|| self.job_sets.key(key)) {
            return known.clone();
        }
        self.namespaces.key(key)
    }

    fn awaits_pods(&self, key: &ObjectKey) -> bool {
        self.memories.has(key)
            && self.uid(key).is_some_and(|uid| self.memories.checks_pods(key, &uid))
    }

    /// Whether Pods of the JobSet of a job run, as far as that was read.
    fn pods(&self, key: &ObjectKey, uid: &str) -> &Reading<RunningPods> {
        self.memories.pods(key, uid)
    }

    /// See [`Cache::remember`].
    fn remember<T>(
        &mut self,
        key: &ObjectKey,
        uid: Option<&str>,
        change: impl FnOnce(&mut JobMemory) -> T,
    ) -> T {
        let known = self.uid(key);
        self.memories.change_known(key, known.as_deref(), uid, change)
    }

    /// In a store that was restored from a backup, what has an old version may have changed since.
    fn note_restore(&mut self) {
        let TakeOver { jobs, job_sets } = self.take_over;
        if self.jobs.delivered() < jobs || self.job_sets.delivered() < job_sets {
            self.take_over = TakeOver::default();
        }
    }

    /// Forgets what was read of a JobSet that is gone.
    fn forget_job_set(&mut self, key: &ObjectKey, gone: Option<&PackedJobSet>) {
        if let (Some(gone), Some(JobRecord { facts, .. })) = (gone, self.job(key)) {
            let gone = gone.facts();
            self.memories.change(key, &facts.uid, |memory| memory.job_set_gone(&gone, &facts));
        }
    }
}

const fn shown_by(source: Source) -> ShownBy {
    match source {
        Source::Watch => ShownBy::Watch,
        Source::Reply { .. } => ShownBy::Reply,
    }
}

/// How many lists were complete at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lists {
    /// Of TrainJobs.
    pub jobs: u64,
    /// Of JobSets.
    pub job_sets: u64,
    /// Of PodGroups.
    pub pod_groups: PerScheduler<u64>,
}
