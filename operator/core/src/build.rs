//! From a TrainJob and its runtime to the objects that run it.
//!
//! A runtime is a template that an administrator wrote; a TrainJob names it and says the few things
//! that differ from job to job. [`build`] puts the two together. It is the same function for every
//! framework: only `framework` knows that there are several, and each has one file that starts with the
//! table of what it adds.
//!
//! 1. [`runtime_key`]: which runtime.
//! 2. [`snapshot`]: the runtime as it was when the job started, which is the one that counts.
//! 3. [`build`]: the [`Objects`]; `draft`, then `framework`, then `jobset`.
//! 4. [`update_suspended`]: what of it may still change once it exists.
//!
//! The rules are Kubeflow Trainer's, so that runtimes, SDK and Kueue keep working: Kueue even computes a
//! job's quota from the JobSet that Trainer would build. Where this differs, the file says so.

pub(crate) mod amount;
pub(crate) mod draft;
pub(crate) mod endpoints;
pub(crate) mod error;
mod fixed;
pub(crate) mod gang;
mod jobset;
mod legacy_finalizer;
mod names;
pub(crate) mod objects;
pub(crate) mod owner;
mod pod_group;
pub(crate) mod quantity;
pub(crate) mod rendezvous;
pub(crate) mod replicated_job;
mod resolve;
pub(crate) mod resources;
mod size;
pub mod snapshot;
mod strategic_merge;
#[cfg(test)]
pub(crate) mod testing;
mod update;
mod variables;

use trainjob_api::TrainJob;

use self::draft::Draft;
use crate::framework::Framework;

pub use self::{
    error::BuildError,
    fixed::fixed_difference,
    legacy_finalizer::without_legacy_finalizer,
    names::name_problem,
    objects::{Objects, PodGroup, SecretClaim, SecretContent},
    owner::owner_reference,
    pod_group::pod_group_patch,
    resolve::{Runtime, RuntimeKey, UnsupportedRuntime, referenced_runtime, runtime_key},
    size::{MAX_OBJECTS, object_count},
    snapshot::SnapshotError,
    update::{JobSetUpdate, update_suspended},
};

/// What a TrainJob becomes on a runtime.
///
/// A function of its two arguments: the same job and runtime always make the same objects, so they can be
/// built again and compared with those that exist.
///
/// # Errors
///
/// When the two do not fit each other, the runtime asks for something that is not implemented, or
/// JobSet could not name what it would have to make.
pub fn build(job: &TrainJob, runtime: &Runtime) -> Result<Objects, BuildError> {
    finish(Draft::new(job, runtime)?, runtime)
}

/// What [`build`] makes of a draft.
pub(crate) fn finish(mut draft: Draft<'_>, runtime: &Runtime) -> Result<Objects, BuildError> {
    let job = draft.job;
    Framework::of(&runtime.spec).build(&mut draft)?;
    let mut objects = jobset::finish(draft);
    pod_group::enforce(&mut objects, job, &runtime.spec)?;
    if size::is_too_large(&objects.job_set) {
        return Err(BuildError::TooLarge);
    }
    match name_problem(&objects.job_set) {
        Some(problem) => Err(BuildError::NameTooLong(problem)),
        None => Ok(objects),
    }
}
