//! What one decision is made on.

use std::sync::Arc;

use trainjob_api::TrainJob;
use trainjob_core::{
    build::Runtime,
    facts::{JobSetFacts, ObjectKey, PerScheduler},
    mark::Accounting,
    observed::{Observed, Readings, Settings},
    take_over::Comparison,
};

use super::{
    Cache, JobRecord,
    groups::{Group, group, presence},
    record,
};

/// What is known of one job, at one moment.
#[derive(Debug)]
pub struct View {
    /// The job.
    pub job: JobRecord,
    manifest: Option<TrainJob>,
    job_set: Option<JobSetFacts>,
    pod_groups: PerScheduler<Group>,
    runtime: Option<Arc<Runtime>>,
    readings: Readings,
    comparison: Comparison,
}

impl View {
    /// Whether its manifest has made room for others.
    #[must_use]
    pub fn lacks_manifest(&self) -> bool {
        self.manifest.is_none() && self.job.facts.finished.is_none()
    }

    /// What the core decides on.
    #[must_use]
    pub fn observed<'a>(&'a self, settings: &'a Settings, accounting: Accounting) -> Observed<'a> {
        Observed {
            job: &self.job.facts,
            manifest: self.manifest.as_ref(),
            job_set: self.job_set.as_ref(),
            pod_groups: self.pod_groups.map(presence),
            runtime: self.runtime.as_deref(),
            readings: &self.readings,
            settings,
            accounting,
            comparison: self.comparison,
        }
    }
}

impl Cache {
    /// What is known of a job; `None` when there is no such job.
    #[must_use]
    pub fn view(&self, key: &ObjectKey) -> Option<View> {
        let (mut view, manifest) = self.look(key)?;
        // Others need not wait while it is read.
        view.manifest = manifest.as_deref().and_then(record::read);
        Some(view)
    }

    /// What is known of a job, with its manifest as it is kept.
    fn look(&self, key: &ObjectKey) -> Option<(View, Option<Arc<str>>)> {
        let state = self.lock();
        let job = state.job(key)?;
        let runtime = job.runtime.as_ref();
        let uid = &job.facts.uid;
        let job_set = state.job_set(key);
        let compare = |job_set: &JobSetFacts| state.take_over.comparison(&job.facts, job_set);
        let view = View {
            manifest: None,
            comparison: job_set.as_ref().map(compare).unwrap_or_default(),
            job_set,
            pod_groups: state.pod_groups.map(|groups| group(groups.as_ref(), key)),
            runtime: runtime.and_then(|key| state.runtimes.get(key).cloned()),
            readings: state.memories.readings(key, uid),
            job,
        };
        Some((view, state.manifests.get(key)))
    }
}
