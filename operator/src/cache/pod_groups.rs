//! The PodGroups of all schedulers, whose kinds the API server may come to know later or never.

use std::sync::Arc;

use trainjob_core::{
    facts::{JobFacts, ObjectKey, PodGroupFacts, Scheduler},
    pass::JobMemory,
};
use trainjob_engine::versions::{self, Source, Versions};

use super::Cache;

impl Cache {
    /// Takes in a PodGroup that a watch or a reply showed. True when that is news.
    pub fn put_pod_group(
        &self,
        scheduler: Scheduler,
        key: &ObjectKey,
        group: PodGroupFacts,
        source: Source,
    ) -> bool {
        let group = (versions::parse(&group.resource_version), Arc::new(group));
        let mut state = self.lock();
        let groups = state.pod_groups.of_mut(scheduler).as_mut();
        groups.is_some_and(|groups| groups.put(key, group, source))
    }

    /// Takes in that a PodGroup is gone.
    pub fn remove_pod_group(
        &self,
        scheduler: Scheduler,
        key: &ObjectKey,
        resource_version: &str,
    ) -> bool {
        let mut state = self.lock();
        let groups = state.pod_groups.of_mut(scheduler).as_mut();
        let gone = groups.and_then(|it| it.remove(key, versions::parse(resource_version)));
        if gone.is_some() {
            state.remember(key, None, JobMemory::pod_group_gone);
        }
        gone.is_some()
    }

    /// Takes in a reply that shows the PodGroup with this UID to be gone.
    pub fn forget_pod_group(&self, scheduler: Scheduler, key: &ObjectKey, uid: &str) {
        if let Some(groups) = self.lock().pod_groups.of_mut(scheduler) {
            groups.forget(key, |(_, group)| group.uid == uid);
        }
    }

    /// A complete list of PodGroups begins.
    pub fn pod_groups_relist(&self, scheduler: Scheduler) {
        let mut state = self.lock();
        if let Some(groups) = state.pod_groups.of_mut(scheduler) {
            groups.relist();
        }
    }

    /// The API server knows the kind, for good: one that has just started knows no kind for a moment. What is known of
    /// its PodGroups counts once a list of them is complete.
    pub fn pod_groups_served(&self, scheduler: Scheduler) {
        self.lock().pod_groups.of_mut(scheduler).get_or_insert_with(|| {
            let mut groups = Versions::default();
            groups.relist();
            groups
        });
    }

    /// The list is complete. Returns the jobs that this may concern: those whose PodGroups vanished meanwhile, and, if it
    /// is the first list, those that may wait for it: unfinished ones that wait or have no JobSet, and those with a PodGroup.
    pub fn pod_groups_listed(&self, scheduler: Scheduler) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let Some(groups) = state.pod_groups.of_mut(scheduler) else { return Vec::new() };
        let is_first = groups.lists() == 0;
        let mut concerned: Vec<_> = groups.listed().into_iter().map(|(key, _)| key).collect();
        let vanished = concerned.clone();
        if is_first {
            concerned.extend(groups.iter().map(|(key, _)| key.clone()));
            let jobs = state.jobs.iter();
            let jobs = jobs.map(|(key, job)| job.record(key, &state.named_runtimes).facts);
            let may_wait = |job: &JobFacts| {
                let has_job_set = state.job_sets.get(&job.key).is_some();
                job.finished.is_none() && (!has_job_set || job.waiting.is_some())
            };
            concerned.extend(jobs.filter(may_wait).map(|job| job.key));
        }
        for key in vanished {
            state.remember(&key, None, JobMemory::pod_group_gone);
        }
        concerned
    }
}
