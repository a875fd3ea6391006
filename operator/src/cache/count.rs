//! What the cache holds, in numbers.

use std::sync::Arc;

use trainjob_api::time::Timestamp;
use trainjob_core::{
    facts::ObjectKey,
    job_stats::{self, JobStats},
};
use trainjob_engine::versions::Versions;

use super::{Cache, JobRecord};
use crate::kinds::Kind;

impl Cache {
    /// Counts every job at `now`, in the group of its namespace. Others wait only while the jobs are noted, not while they are looked at.
    pub fn count(
        &self,
        job_stats: &mut JobStats<'_>,
        now: Timestamp,
        group: impl Fn(&str) -> Arc<str>,
    ) {
        for key in self.all_keys() {
            let state = self.lock();
            // One that has gone meanwhile does not count.
            let Some(JobRecord { facts: job, .. }) = state.job(&key) else { continue };
            let release = || {
                let job_set = state.job_set(&key);
                job_stats::release_of(&job, job_set.as_ref(), state.pods(&key, &job.uid), now)
            };
            job_stats.add(group(&key.namespace), &job, release);
        }
    }

    fn all_keys(&self) -> Vec<ObjectKey> {
        self.lock().jobs.keys().cloned().collect()
    }

    /// How many objects there are of each kind, in the order of [`Kind::ALL`].
    #[must_use]
    pub fn sizes(&self) -> [usize; Kind::ALL.len()] {
        let state = self.lock();
        Kind::ALL.map(|kind| match kind {
            Kind::TrainJob => state.jobs.count(),
            Kind::JobSet => state.job_sets.count(),
            Kind::TrainingRuntime | Kind::ClusterTrainingRuntime => {
                state.runtimes.keys().filter(|key| key.kind() == kind.name()).count()
            }
            Kind::PodGroup(scheduler) => {
                state.pod_groups.of(scheduler).as_ref().map_or(0, Versions::count)
            }
        })
    }
}
