//! What one decision is made on.

use std::sync::Arc;

use trainjob_api::TrainJob;
use trainjob_core::{
    facts::{JobSetFacts, ObjectKey, PerScheduler},
    mark::Accounting,
    observed::{KnownRuntime, Listed, Observed, Reading, Readings, Settings},
    take_over::Comparison,
};

use super::{
    Cache, JobRecord,
    groups::{Group, group, presence},
    kept_runtimes::Kept,
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
    /// The runtime that it names.
    runtime: Kept,
    readings: Readings,
    comparison: Comparison,
}

impl View {
    /// Whether its manifest has made room for others.
    #[must_use]
    pub fn lacks_manifest(&self) -> bool {
        self.manifest.is_none() && self.job.facts.finished.is_none()
    }

    /// What its runtime says, as far as it is known.
    #[cfg(test)]
    pub(super) fn into_runtime(self) -> Option<Arc<trainjob_core::build::Runtime>> {
        match self.runtime {
            Kept::Parsed(runtime) => Some(runtime),
            Kept::Absent | Kept::Evicted | Kept::Text(_) => None,
        }
    }

    /// What the core decides on.
    #[must_use]
    pub fn observed<'a>(
        &'a self,
        settings: &'a Settings,
        accounting: Accounting,
        listed: Listed,
    ) -> Observed<'a> {
        Observed {
            job: &self.job.facts,
            manifest: self.manifest.as_ref(),
            job_set: self.job_set.as_ref(),
            pod_groups: self.pod_groups.map(presence),
            runtime: match &self.runtime {
                Kept::Absent => KnownRuntime::Absent,
                Kept::Evicted | Kept::Text(_) => KnownRuntime::Evicted,
                Kept::Parsed(runtime) => KnownRuntime::There(runtime),
            },
            readings: &self.readings,
            settings,
            accounting,
            comparison: self.comparison,
            listed,
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
        // A job that was built before is built of its snapshot.
        let is_frozen = matches!(view.readings.snapshot, Reading::Found(_));
        if let (Kept::Text(text), Some(key), false) = (&view.runtime, &view.job.runtime, is_frozen)
        {
            let parsed = self.parsed_runtime(key.clone(), Arc::clone(text));
            view.runtime = parsed.map_or(Kept::Evicted, Kept::Parsed);
        }
        Some(view)
    }

    /// How long the texts are together that a [view](Self::view) of a job is read from, and a plan is made of.
    #[must_use]
    pub fn text_length(&self, key: &ObjectKey) -> usize {
        let state = self.lock();
        let Some(JobRecord { facts, runtime }) = state.job(key) else { return 0 };
        let memory = state.memories.get(key, &facts.uid);
        let texts = [
            state.manifests.get(key).map(|text| text.len()),
            runtime.and_then(|key| state.runtime_length(&key)),
            memory.map(|memory| memory.document_length()),
        ];
        texts.into_iter().flatten().sum()
    }

    /// What is known of a job, with its manifest as it is kept.
    fn look(&self, key: &ObjectKey) -> Option<(View, Option<Arc<str>>)> {
        let mut state = self.lock();
        let job = state.job(key)?;
        let runtime = job.runtime.as_ref().map_or(Kept::Absent, |key| state.runtime(key));
        let uid = &job.facts.uid;
        let job_set = state.job_set(key);
        let compare = |job_set: &JobSetFacts| state.take_over.comparison(&job.facts, job_set);
        let view = View {
            manifest: None,
            comparison: job_set.as_ref().map(compare).unwrap_or_default(),
            job_set,
            pod_groups: state.pod_groups.map(|groups| group(groups.as_ref(), key)),
            runtime,
            readings: state.memories.readings(key, uid),
            job,
        };
        Some((view, state.manifests.get(key)))
    }
}
