//! What the cache holds, in numbers.

use std::sync::Arc;

use trainjob_api::constants::{CLUSTER_TRAINING_RUNTIME_KIND, TRAINING_RUNTIME_KIND};
use trainjob_core::{
    job_stats::{self, JobStats},
    lifecycle::release,
};
use trainjob_engine::{clock, versions::Versions};

use super::{Cache, JobRecord, groups::Groups};
use crate::kinds::KINDS;

impl Cache {
    /// Counts every job. Others wait only while the jobs are noted, not while they are looked at.
    pub fn count(&self, job_stats: &mut JobStats<'_>) {
        let now = clock::now();
        for record in self.records() {
            let job = &record.facts;
            job_stats.add(job, || {
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

    /// How many objects there are of each kind, in the order of [`KINDS`].
    #[must_use]
    pub fn sizes(&self) -> [usize; KINDS.len()] {
        let state = self.lock();
        let runtimes = |kind| state.runtimes.keys().filter(|key| key.kind() == kind).count();
        let groups = |groups: &Option<Groups>| groups.as_ref().map_or(0, Versions::count);
        [
            state.jobs.count(),
            state.job_sets.count(),
            runtimes(TRAINING_RUNTIME_KIND),
            runtimes(CLUSTER_TRAINING_RUNTIME_KIND),
            groups(&state.coscheduling),
            groups(&state.volcano),
        ]
    }
}
