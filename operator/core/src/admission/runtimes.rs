//! Runtimes: what a template needs so that a TrainJob can run on it.
//!
//! The first two rules and their words are Kubeflow Trainer's; the others are ours. Both kinds of
//! runtime are judged in the same way, on update too, where only what the update brings in counts: a
//! runtime that was stored before there was a rule can still be changed. (Trainer lets any update of a
//! TrainingRuntime through, and judges one of a ClusterTrainingRuntime as if it were new.)
//!
//! | rule | field |
//! |---|---|
//! | a replicated job with an ancestor label has one replica | `…replicatedJobs[i].replicas` |
//! | and its container | `…replicatedJobs[i].template.spec.template.spec.containers` |
//! | each ancestor label is there at most once | `…replicatedJobs[i].template.metadata.labels` |
//! | one scheduler | `spec.podGroupPolicy` |
//! | MPI has a launcher, and nodes unless the launcher is one | `…replicatedJobs` |

use k8s_openapi::api::core::v1::Container;
use trainjob_api::{
    constants::{ANCESTOR_LABEL, ANCESTOR_TRAINER, DATASET_INITIALIZER, MODEL_INITIALIZER, NODE},
    jobset::ReplicatedJob,
    v1alpha1::runtime::TrainingRuntimeSpec,
};

use super::{FieldError, Verdict, field::brought_in, same::same};
use crate::{
    build::{
        Runtime, RuntimeKey,
        replicated_job::{ancestor, container},
    },
    framework::Framework,
    scheduler::Scheduler,
};

/// Where the replicated jobs of a runtime are.
pub(crate) const STEPS: &str = "spec.template.spec.replicatedJobs";
const SUPPORT_LABEL: &str = "trainer.kubeflow.org/support";
const DEPRECATED: &str = "deprecated";
const POLICY: &str = "is deprecated and will be removed in a future release of Kubeflow Trainer. \
     See runtime deprecation policy: \
     https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy";

/// The verdict on a runtime that is to be created.
#[must_use]
pub fn create(runtime: &Runtime) -> Verdict {
    let warnings = deprecation(runtime, "").into_iter().collect();
    Verdict { errors: errors(&runtime.spec), warnings, ..Verdict::default() }
}

/// The verdict on a runtime that is to replace `old`.
#[must_use]
pub fn update(old: &Runtime, runtime: &Runtime) -> Verdict {
    let is_going = runtime.metadata.deletion_timestamp.is_some();
    if is_going || same(&old.spec, &runtime.spec) {
        return Verdict::default();
    }
    let mut errors = errors(&runtime.spec);
    if !errors.is_empty() {
        errors = brought_in(errors, &self::errors(&old.spec));
    }
    Verdict { errors, ..Verdict::default() }
}

/// The warning about a runtime that is on its way out, with `prefix` in front.
pub(super) fn deprecation(runtime: &Runtime, prefix: &str) -> Option<String> {
    let RuntimeKey::Cluster { name } = &runtime.key else { return None };
    let support = runtime.metadata.labels.as_ref().and_then(|labels| labels.get(SUPPORT_LABEL));
    let is_deprecated = support.is_some_and(|support| support == DEPRECATED);
    is_deprecated.then(|| format!("{prefix}ClusterTrainingRuntime {name:?} {POLICY}"))
}

fn errors(spec: &TrainingRuntimeSpec) -> Vec<FieldError> {
    let template = spec.template.spec.as_ref();
    let replicated_jobs =
        template.and_then(|spec| spec.replicated_jobs.as_deref()).unwrap_or_default();
    let mut errors = Vec::new();
    let mut seen = Vec::new();
    for (index, replicated_job) in replicated_jobs.iter().enumerate() {
        let Some((ancestor, needed)) = role(replicated_job) else { continue };
        let path = format!("{STEPS}[{index}]");
        errors.extend(replicas(&path, replicated_job));
        errors.extend(required_container(&path, replicated_job, ancestor, needed));
        if seen.contains(&ancestor) {
            errors.push(twice(&path, ancestor));
        } else {
            seen.push(ancestor);
        }
    }
    errors.extend(schedulers(spec));
    errors.extend(Framework::of(spec).validate_runtime(replicated_jobs));
    errors
}

/// Which step of a TrainJob this is, and the container it needs; nothing for any other job.
fn role(replicated_job: &ReplicatedJob) -> Option<(&str, &str)> {
    match ancestor(replicated_job)? {
        ANCESTOR_TRAINER => Some((ANCESTOR_TRAINER, NODE)),
        initializer @ (DATASET_INITIALIZER | MODEL_INITIALIZER) => Some((initializer, initializer)),
        _ => None,
    }
}

fn replicas(path: &str, replicated_job: &ReplicatedJob) -> Option<FieldError> {
    let replicas = replicated_job.replicas.filter(|replicas| *replicas != 1)?;
    Some(FieldError::invalid(format!("{path}.replicas"), &replicas, "always must be 1"))
}

fn required_container(
    path: &str,
    replicated_job: &ReplicatedJob,
    ancestor: &str,
    needed: &str,
) -> Option<FieldError> {
    if container(replicated_job, needed).is_some() {
        return None;
    }
    let pod = replicated_job.template.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers: &[Container] = pod.map(|pod| pod.containers.as_slice()).unwrap_or_default();
    let detail = format!("must contain the required container for the ancestor: {ancestor}");
    let path = format!("{path}.template.spec.template.spec.containers");
    Some(FieldError::invalid(path, containers, detail))
}

fn twice(path: &str, ancestor: &str) -> FieldError {
    let path = format!("{path}.template.metadata.labels[{ANCESTOR_LABEL}]");
    let detail = "must be the step of one replicated job only: an earlier one has this label";
    FieldError::invalid(path, ancestor, detail)
}

fn schedulers(spec: &TrainingRuntimeSpec) -> Option<FieldError> {
    let mut asked = Scheduler::asked(spec.pod_group_policy.as_ref()?);
    let (one, other) = (asked.next()?.policy(), asked.next()?.policy());
    let detail = format!("a Pod has one scheduler: set either {one} or {other}");
    Some(FieldError::forbidden("spec.podGroupPolicy", detail))
}

#[cfg(test)]
mod tests;
