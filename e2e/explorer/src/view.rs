//! What one decision is made on.

use std::sync::Arc;

use trainjob_core::{
    Now, Observed, Plan,
    build::Runtime,
    mark::Accounting,
    observed::{KnownRuntime, Listed, PodGroups, Readings, Settings},
    plan,
    take_over::Comparison,
};

use crate::objects::{StoredJob, StoredJobSet};

/// What is known of one job, at one moment.
#[derive(Debug, Clone)]
pub struct View {
    /// The job.
    pub job: Arc<StoredJob>,
    /// Whether its manifest has made room for others.
    pub evicted: bool,
    /// The JobSet of its name.
    pub job_set: Option<Arc<StoredJobSet>>,
    /// The runtime it names.
    pub runtime: Option<Arc<Runtime>>,
    /// Whether that has made room for others.
    pub runtime_evicted: bool,
    /// What was read directly.
    pub readings: Readings,
    /// When a suspended JobSet is compared with the job.
    pub comparison: Comparison,
    /// How much has been listed.
    pub listed: Listed,
}

impl View {
    /// What the core plans at `now`.
    #[must_use]
    pub fn plan(&self, settings: &Settings, now: Now) -> Plan {
        plan(&self.observed(settings), now)
    }

    /// What the core is shown of it.
    #[must_use]
    pub fn observed<'a>(&'a self, settings: &'a Settings) -> Observed<'a> {
        let job = &self.job.facts;
        let manifest = job.finished.is_none() && !self.evicted;
        Observed {
            job,
            manifest: manifest.then_some(&self.job.manifest),
            job_set: self.job_set.as_ref().map(|job_set| &job_set.facts),
            runtime: self.known_runtime(),
            pod_groups: PodGroups::default(),
            readings: &self.readings,
            settings,
            accounting: Accounting::default(),
            comparison: self.comparison,
            listed: self.listed,
        }
    }

    fn known_runtime(&self) -> KnownRuntime<'_> {
        match self.runtime.as_deref() {
            Some(_) if self.runtime_evicted => KnownRuntime::Evicted,
            runtime => runtime.into(),
        }
    }

    /// The JobSet, if it is the job's own.
    #[must_use]
    pub fn own(&self) -> Option<&StoredJobSet> {
        let own = |job_set: &&Arc<StoredJobSet>| {
            job_set.facts.train_job_uid.as_ref() == Some(&self.job.facts.uid)
        };
        self.job_set.as_ref().filter(own).map(AsRef::as_ref)
    }
}
