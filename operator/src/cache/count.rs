//! What the cache holds, in numbers.

use std::sync::Arc;

use trainjob_api::time::Timestamp;
use trainjob_core::{
    job_stats::{self, JobStats},
    lifecycle::release,
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
        for record in self.records() {
            let job = &record.facts;
            job_stats.add(group(&job.key.namespace), job, || {
                let release = self.with_job(&job.key, |job, job_set, pods| {
                    job_stats::release_of(job, job_set, pods, now)
                });
                // A job that has gone meanwhile holds nothing.
                release.unwrap_or(release::Decision::Released)
            });
        }
    }

    fn records(&self) -> Vec<Arc<JobRecord>> {
        self.lock().jobs.iter().map(|(_, record)| Arc::clone(record)).collect()
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
