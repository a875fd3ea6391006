//! The verdict on a TrainJob.
//!
//! | request | judged by |
//! |---|---|
//! | create | the runtime that is named, which must exist |
//! | update that changes the spec | the snapshot's runtime, else the one that is named, else none |
//! | any other update | nothing |
//!
//! On create a job is also built, to see whether it can be. Names that JobSet would refuse are an error,
//! for they never change. Whatever else is in the way is a warning: the runtime may yet be mended.

use std::collections::BTreeMap;

use trainjob_api::{
    TrainJob,
    v1alpha1::train_job::{RuntimeRef, TrainJobSpec},
};

use super::{
    FieldError, Verdict,
    field::brought_in,
    initializers,
    lifecycle::{self, Field, FieldUpdates},
    limits::{self, Limits},
    patches,
    runtimes::deprecation,
    same::same,
    unions, volcano,
};
use crate::{
    build::{
        BuildError, Runtime, RuntimeKey, UnsupportedRuntime, draft::Draft, finish, runtime_key,
    },
    framework::Framework,
    lifecycle::deadline::Clock,
};

/// What is to happen to the TrainJob.
#[derive(Debug, Clone, Copy)]
pub enum Operation<'a> {
    /// It is new.
    Create,
    /// It replaces this one.
    Update(&'a TrainJob),
}

/// A request, and what the caller looked up for it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What is to happen.
    pub operation: Operation<'a>,
    /// The TrainJob as it is to be stored, defaults filled in.
    pub job: &'a TrainJob,
    /// The runtime that it names, or why that cannot be read.
    pub runtime: Result<&'a Runtime, &'a str>,
    /// The runtime in its snapshot, if it has one.
    pub snapshot: Option<&'a Runtime>,
    /// The names of the replicated jobs of its JobSet that are active, or why they cannot be read; of no
    /// consequence unless [`asks_what_runs`](super::asks_what_runs). Without a JobSet none is active, and
    /// one that somebody else controls is not its own.
    pub active: Result<&'a [String], &'a str>,
    /// Of the [`priority_classes`](super::priority_classes) of the runtime those that cannot be read,
    /// and why. An update does not depend on it: it brings in none.
    pub missing_priority_classes: &'a BTreeMap<String, String>,
    /// Whether TTL and deadline may change.
    pub field_updates: FieldUpdates,
    /// From when a deadline counts.
    pub deadline_clock: Clock,
    /// Defaults and maxima of TTL and deadline in its namespace; of no consequence to an update unless
    /// [`asks_for_limits`].
    pub limits: Limits<'a>,
}

/// Whether the TrainJob may be stored.
#[must_use]
pub fn validate(request: &Request<'_>) -> Verdict {
    match request.operation {
        Operation::Create => create(request),
        Operation::Update(old) => update(request, old),
    }
}

fn create(request: &Request<'_>) -> Verdict {
    let job = request.job;
    let key = match named(job) {
        Ok(key) => key,
        Err(unsupported) => {
            return Verdict { unsupported: Some(unsupported), ..Verdict::default() };
        }
    };
    let runtime = match request.runtime {
        Ok(runtime) => runtime,
        Err(problem) => {
            return Verdict { errors: vec![missing(job, &key, problem)], ..Verdict::default() };
        }
    };
    let (mut errors, draft) = drafted(job, Some(runtime), request.missing_priority_classes);
    errors.extend(limits::create(job, &request.limits, request.deadline_clock));
    let mut warnings: Vec<_> = deprecation(runtime, "Referenced ").into_iter().collect();
    warnings.extend(lifecycle::warnings(job, request.deadline_clock));
    warnings.extend(patches::warnings(job));
    match draft.map(|draft| finish(draft, runtime)) {
        Some(Err(BuildError::NameTooLong(problem))) => errors.push(name(job, &problem)),
        Some(Err(problem)) if errors.is_empty() => {
            warnings.push(format!("the TrainJob cannot start as it is: {problem}"));
        }
        // What keeps it from being built is among the errors, then.
        _ => {}
    }
    Verdict { errors, warnings, ..Verdict::default() }
}

fn update(request: &Request<'_>, old: &TrainJob) -> Verdict {
    let job = request.job;
    if job.metadata.deletion_timestamp.is_some() || is_unchanged(&old.spec, &job.spec) {
        return Verdict::default();
    }
    if named(old) != named(job) {
        // The schema forbids it, but for a job that was stored without a spec.
        return create(request);
    }
    let runtime = request.snapshot.or(request.runtime.ok());
    let classes = request.missing_priority_classes;
    let mut errors = Vec::new();
    if asks_for_runtime(old, job) {
        errors = problems(job, runtime, classes);
    }
    if !errors.is_empty() {
        errors = brought_in(errors, &problems(old, runtime, classes));
    }
    errors.extend(patches::change(old, job, runtime, request.active));
    errors.extend(lifecycle::change(old, job, request.field_updates));
    if asks_for_limits(old, job, request.field_updates) {
        errors.extend(limits::update(old, job, &request.limits));
    }
    let live = request.runtime.ok();
    let mut warnings: Vec<_> =
        live.and_then(|it| deprecation(it, "Referenced ")).into_iter().collect();
    if !same(patches::entries(old), patches::entries(job)) {
        warnings.extend(patches::warnings(job));
    }
    Verdict { errors, warnings, ..Verdict::default() }
}

/// Whether both say the same. Most updates change whether the job is suspended, which is quickly seen.
fn is_unchanged(old: &TrainJobSpec, new: &TrainJobSpec) -> bool {
    old.suspend == new.suspend && same(old, new)
}

/// Whether the verdict on this update depends on the job's runtime: not if all that changes is whether it
/// is suspended, its TTL or its deadline, which brings in no error that has to do with one.
#[must_use]
pub fn asks_for_runtime(old: &TrainJob, job: &TrainJob) -> bool {
    let as_before = TrainJobSpec {
        suspend: old.spec.suspend,
        ttl_seconds_after_finished: old.spec.ttl_seconds_after_finished,
        active_deadline_seconds: old.spec.active_deadline_seconds,
        ..job.spec.clone()
    };
    !same(&old.spec, &as_before)
}

/// Whether the verdict on this update depends on maxima: not if TTL and deadline stay, or must not change anyway.
#[must_use]
pub fn asks_for_limits(old: &TrainJob, job: &TrainJob, updates: FieldUpdates) -> bool {
    let fields = |job: &TrainJob| Field::ALL.map(|field| field.of_job(job));
    updates == FieldUpdates::Mutable && fields(old) != fields(job)
}

/// The runtime that the job names. One without a spec, which the schema admits, names none at all.
fn named(job: &TrainJob) -> Result<RuntimeKey, UnsupportedRuntime> {
    if job.spec.runtime_ref == RuntimeRef::default() {
        return Err(UnsupportedRuntime { kind: String::new(), group: String::new() });
    }
    runtime_key(job)
}

/// The error about a runtime that cannot be read. Clients match on the capital letter of the one kind.
fn missing(job: &TrainJob, key: &RuntimeKey, problem: &str) -> FieldError {
    let (path, kind) = match key {
        RuntimeKey::Cluster { .. } => ("spec.RuntimeRef", "clusterTrainingRuntime"),
        RuntimeKey::Namespaced { .. } => ("spec.runtimeRef", "trainingRuntime"),
    };
    let detail =
        format!("{problem}: specified {kind} must be created before the TrainJob is created");
    FieldError::invalid(path, &job.spec.runtime_ref, detail)
}

fn name(job: &TrainJob, problem: &str) -> FieldError {
    let detail = problem.strip_prefix("metadata.name is ").unwrap_or(problem);
    FieldError::invalid("metadata.name", &job.metadata.name, detail)
}

/// What is wrong with the job as such, and with the two together if there is a runtime.
fn problems(
    job: &TrainJob,
    runtime: Option<&Runtime>,
    missing_priority_classes: &BTreeMap<String, String>,
) -> Vec<FieldError> {
    drafted(job, runtime, missing_priority_classes).0
}

/// The [`problems`], and what the two make together as far as they can.
fn drafted<'j>(
    job: &'j TrainJob,
    runtime: Option<&Runtime>,
    missing_priority_classes: &BTreeMap<String, String>,
) -> (Vec<FieldError>, Option<Draft<'j>>) {
    let template = runtime.and_then(|runtime| runtime.spec.template.spec.as_ref());
    let replicated_jobs = runtime.map(|_| template.and_then(|it| it.replicated_jobs.as_deref()));
    let mut errors = patches::content(job, replicated_jobs.map(Option::unwrap_or_default));
    let Some(runtime) = runtime else { return (errors, None) };
    let draft = match Draft::new(job, runtime) {
        Ok(draft) => draft,
        Err(problem) => {
            errors.push(patches::unfit(job, &problem));
            return (errors, None);
        }
    };
    errors.extend(unions::check(job, &draft));
    errors.extend(initializers::check(job, &draft));
    errors.extend(Framework::of(&runtime.spec).validate(job, &draft));
    let gang = runtime.spec.pod_group_policy.as_ref();
    if gang.is_some_and(|policy| policy.volcano.is_some()) {
        errors.extend(volcano::check(&draft, missing_priority_classes));
    }
    (errors, Some(draft))
}

#[cfg(test)]
mod tests;
