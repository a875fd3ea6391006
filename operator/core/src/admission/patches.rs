//! `spec.runtimePatches`: what a patch may name, and when patches may change.
//!
//! Some things differ from Kubeflow Trainer:
//!
//! * Names are looked up in the template as the runtime has it. Trainer looks into the patched one, where
//!   every name that a patch makes up can be found.
//! * Init containers are judged as containers are, each by the names of their own kind.
//! * Each path has the index of the entry that it is about, and the value is the name that is wrong: not
//!   the whole list, which has up to sixteen entries of hundreds of kilobytes.
//! * Entries that only change places are no change, where the runtime patched with them stays the same.

use std::collections::{HashMap, HashSet};

use k8s_openapi::{api::core::v1::Container, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use trainjob_api::{
    TrainJob,
    constants::{DATASET_INITIALIZER, MODEL_INITIALIZER, NODE},
    jobset::ReplicatedJob,
    v1alpha1::patches::{ContainerPatch, PodSpecPatch, ReplicatedJobPatch, RuntimePatch},
};

use super::{field::FieldError, manager, same::same};
use crate::build::{BuildError, Runtime, draft::Draft};

const PATCHES: &str = "spec.runtimePatches";

/// What is wrong with the patches themselves; `template` is the runtime's jobs, if there is a runtime.
pub(super) fn content(job: &TrainJob, template: Option<&[ReplicatedJob]>) -> Vec<FieldError> {
    let known = template
        .map(|jobs| jobs.iter().map(|job| (job.name.as_str(), job)).collect::<HashMap<_, _>>());
    let mut errors = Vec::new();
    for (index, patch) in entries(job).iter().enumerate() {
        let path = path_of(index);
        errors.extend(manager::check(&format!("{path}.manager"), &patch.manager));
        for replicated_job in replicated_jobs(patch) {
            errors.extend(known.iter().flat_map(|known| unknown(&path, replicated_job, known)));
            errors.extend(variables(&path, replicated_job));
        }
    }
    errors
}

/// What the author of the patches should know.
pub(super) fn warnings(job: &TrainJob) -> Vec<String> {
    let entries = entries(job).iter().enumerate();
    let without_effect = entries.filter(|(_, entry)| metadata(entry).any(says_more_than_heard));
    let warning = |(index, _)| {
        format!("{}: labels and annotations are all that has an effect of metadata", path_of(index))
    };
    without_effect.map(warning).collect()
}

/// Whether there is something in the metadata of a patch that nobody looks at.
fn says_more_than_heard(metadata: &ObjectMeta) -> bool {
    let heard = ObjectMeta {
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        ..ObjectMeta::default()
    };
    !same(metadata, &heard)
}

fn metadata(entry: &RuntimePatch) -> impl Iterator<Item = &ObjectMeta> {
    let template = entry.training_runtime_spec.as_ref().and_then(|spec| spec.template.as_ref());
    let of_replicated_jobs = replicated_jobs(entry)
        .iter()
        .filter_map(|replicated_job| replicated_job.template.as_ref())
        .flat_map(|job| {
            let pod = job.spec.as_ref().and_then(|spec| spec.template.as_ref());
            [job.metadata.as_ref(), pod.and_then(|pod| pod.metadata.as_ref())]
        });
    of_replicated_jobs.chain([template.and_then(|template| template.metadata.as_ref())]).flatten()
}

/// The error about a patch that does not fit the template.
pub(super) fn unfit(job: &TrainJob, problem: &BuildError) -> FieldError {
    match problem {
        BuildError::Patch { manager, problem } => {
            let index = entries(job).iter().position(|patch| patch.manager == *manager);
            let path = index.map_or(PATCHES.into(), path_of);
            let detail = format!("does not fit the runtime's template: {problem}");
            FieldError::invalid(path, manager, detail)
        }
        other => FieldError::invalid("spec.runtimeRef", &job.spec.runtime_ref, other.to_string()),
    }
}

/// What forbids the change of the patches from `old` to `job`, on this runtime, if there is one. `active`
/// are the names of the replicated jobs of its JobSet that are active, or why they are not known.
pub(super) fn change(
    old: &TrainJob,
    job: &TrainJob,
    runtime: Option<&Runtime>,
    active: Result<&[String], &str>,
) -> Vec<FieldError> {
    if !has_changed(old, job) || runtime.is_some_and(|runtime| only_moves(old, job, runtime)) {
        return Vec::new();
    }
    if !is_suspended(old) && !is_suspended(job) {
        let detail = "RuntimePatches can only be modified when the TrainJob is suspended before or after the update";
        return vec![FieldError::forbidden(PATCHES, detail)];
    }
    let still_active = |name: &String| {
        let detail = format!(
            "RuntimePatches cannot be modified when the JobSet's ReplicatedJob {name} is still active"
        );
        FieldError::forbidden(PATCHES, detail)
    };
    match active {
        Ok(active) => active.iter().map(still_active).collect(),
        Err(problem) => vec![FieldError::internal(PATCHES, problem)],
    }
}

/// Whether the verdict on this update may depend on what is active in the job's JobSet.
#[must_use]
pub fn asks_what_runs(old: &TrainJob, job: &TrainJob) -> bool {
    has_changed(old, job) && (is_suspended(old) || is_suspended(job))
}

fn has_changed(old: &TrainJob, job: &TrainJob) -> bool {
    !same(&entries(old), &entries(job))
}

/// Whether the entries only change places and the patched runtime stays what it is. (The order counts
/// where two of them change the same field.)
fn only_moves(old: &TrainJob, job: &TrainJob, runtime: &Runtime) -> bool {
    let sorted = |job| {
        let mut entries: Vec<_> = entries(job).iter().collect();
        entries.sort_by_key(|entry| &entry.manager);
        entries
    };
    let patched = |job| {
        let draft = Draft::new(job, runtime).ok()?;
        Some((draft.labels, draft.annotations, draft.spec))
    };
    same(&sorted(old), &sorted(job)) && patched(old).is_some_and(|old| Some(old) == patched(job))
}

fn is_suspended(job: &TrainJob) -> bool {
    job.spec.suspend.unwrap_or(false)
}

pub(super) fn entries(job: &TrainJob) -> &[RuntimePatch] {
    job.spec.runtime_patches.as_deref().unwrap_or_default()
}

/// Where the entry at this index is.
pub(super) fn path_of(index: usize) -> String {
    format!("{PATCHES}[{index}]")
}

pub(super) fn replicated_jobs(patch: &RuntimePatch) -> &[ReplicatedJobPatch] {
    let template = patch.training_runtime_spec.as_ref().and_then(|spec| spec.template.as_ref());
    let spec = template.and_then(|template| template.spec.as_ref());
    spec.and_then(|spec| spec.replicated_jobs.as_deref()).unwrap_or_default()
}

pub(super) fn pod(replicated_job: &ReplicatedJobPatch) -> Option<&PodSpecPatch> {
    replicated_job.template.as_ref()?.spec.as_ref()?.template.as_ref()?.spec.as_ref()
}

/// The names that the template does not have.
fn unknown(
    path: &str,
    replicated_job: &ReplicatedJobPatch,
    template: &HashMap<&str, &ReplicatedJob>,
) -> Vec<FieldError> {
    let name = &replicated_job.name;
    let Some(known) = template.get(name.as_str()) else {
        let detail = "must not have replicated job that doesn't exist in the runtime job template";
        return vec![FieldError::invalid(path, name, detail)];
    };
    let Some(wishes) = pod(replicated_job) else { return Vec::new() };
    let pod = known.template.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let init_containers = pod.and_then(|pod| pod.init_containers.as_deref());
    let containers = pod.map(|pod| pod.containers.as_slice());
    let of_kind = |kind: &str, patches: Option<&[ContainerPatch]>, known: Option<&[Container]>| {
        let detail = format!("must not have {kind} that doesn't exist in the runtime job {name}");
        let unknown = not_there(patches.unwrap_or_default(), known.unwrap_or_default());
        unknown.into_iter().map(|name| FieldError::invalid(path, name, &*detail)).collect()
    };
    let mut errors: Vec<_> =
        of_kind("initContainer", wishes.init_containers.as_deref(), init_containers);
    errors.append(&mut of_kind("container", wishes.containers.as_deref(), containers));
    errors
}

/// The names of the patched containers that are not known.
fn not_there<'p>(patches: &'p [ContainerPatch], known: &[Container]) -> Vec<&'p str> {
    if patches.is_empty() {
        return Vec::new();
    }
    let known: HashSet<_> = known.iter().map(|container| container.name.as_str()).collect();
    let names = patches.iter().map(|patch| patch.name.as_str());
    names.filter(|name| !known.contains(name)).collect()
}

/// Variables of containers that get theirs from the TrainJob's own fields.
fn variables(path: &str, replicated_job: &ReplicatedJobPatch) -> impl Iterator<Item = FieldError> {
    const STEPS: [&str; 3] = [DATASET_INITIALIZER, MODEL_INITIALIZER, NODE];
    let lists = pod(replicated_job).map(|pod| [&pod.init_containers, &pod.containers]);
    let containers = lists.into_iter().flatten().flatten().flatten();
    containers
        .filter(|it| STEPS.contains(&it.name.as_str()))
        .filter(|it| it.env.as_ref().is_some_and(|env| !env.is_empty()))
        .map(move |it| {
            let detail = format!("must not have envs for the {} containers", STEPS.join(", "));
            FieldError::invalid(path, &it.name, detail)
        })
}

#[cfg(test)]
mod tests;
