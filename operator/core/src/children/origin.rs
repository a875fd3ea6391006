//! What a job's children are made from.

use std::hash::{DefaultHasher, Hash, Hasher};

use trainjob_api::{TrainJob, v1alpha1::train_job::TrainJobSpec};

use super::step::Step;
use crate::{
    action::Action,
    build::{self, Runtime, SnapshotError, snapshot},
    observed::{KnownRuntime, Observed, Reading},
};

/// Where the runtime of a job comes from.
pub(super) enum Source<'a> {
    /// From its snapshot.
    Frozen(Box<Runtime>),
    /// From the runtime as it is now; it has to be frozen first.
    Live(&'a Runtime),
    /// From the runtime as it is now, which is to be read again first.
    Evicted,
    /// Unknown until the snapshot has been read.
    Unread,
    /// From nowhere: the runtime does not exist.
    Missing,
    /// The ConfigMap under the snapshot's name is of no use.
    Unusable(SnapshotError),
}

/// Where that of this job comes from.
pub(super) fn source<'a>(observed: &Observed<'a>, manifest: &TrainJob) -> Source<'a> {
    match (&observed.readings.snapshot, observed.runtime) {
        (Reading::Found(config_map), _) => match snapshot::read(manifest, config_map) {
            Ok(runtime) => Source::Frozen(Box::new(runtime)),
            Err(error) => Source::Unusable(error),
        },
        (Reading::Absent, KnownRuntime::There(runtime)) => Source::Live(runtime),
        (Reading::Absent, KnownRuntime::Evicted) => Source::Evicted,
        (Reading::Absent, KnownRuntime::Absent) => Source::Missing,
        (Reading::NotRead, _) => Source::Unread,
    }
}

/// Reads the runtime that a job names.
pub(super) fn read_runtime(manifest: &TrainJob) -> Step {
    // An unknown kind has failed the job before it came here.
    let key = build::runtime_key(manifest).ok();
    Step::act(key.map(Action::ReadRuntime).into_iter().collect())
}

/// A digest of everything in a job that its JobSet is made from, suspension aside.
///
/// It is kept in memory only, so that nothing depends on it being the same in another release.
pub(super) fn digest(manifest: &TrainJob) -> u64 {
    let TrainJobSpec {
        runtime_ref,
        initializer,
        trainer,
        runtime_patches,
        managed_by,
        suspend: _,
        active_deadline_seconds: _,
        ttl_seconds_after_finished: _,
    } = &manifest.spec;
    let inputs = (runtime_ref, initializer, trainer, runtime_patches, managed_by);
    let mut hasher = DefaultHasher::new();
    // Inputs that cannot be written as JSON were never read from it; equal digests are then right.
    serde_json::to_string(&inputs).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
