//! Defaults and maxima of TTL and deadline (A15 of `docs/semantics.md`).
//!
//! Those of the cluster are in the configuration, those of a namespace in its annotations, which only those may write who
//! may write Namespaces. The lower maximum holds. Of a new job:
//!
//! | job | field |
//! |---|---|
//! | has the field | is refused if it is more than the maximum |
//! | lacks it | gets the default, but no more than the maximum; without a default the maximum, which nobody escapes by leaving the field out |
//! | lacks a deadline, waits, and the deadline would count meanwhile | gets none; is refused if there is a maximum |
//! | is a copy that MultiKueue has made | is left alone: it was judged where its user created it |
//!
//! An update is refused only if it raises the field beyond the maximum, or removes it while there is one.

mod annotations;

use std::fmt::{self, Display};

use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, jsonptr::PointerBuf};
use trainjob_api::{TrainJob, constants::MULTIKUEUE_ORIGIN_LABEL, v1alpha1::train_job::RuntimeRef};

use self::annotations::Annotated;
pub use self::annotations::NamespaceLimits;
use super::{
    FieldError,
    lifecycle::{Field, waits},
    ownership::Manager,
};
use crate::lifecycle::deadline::Clock;

/// What the cluster sets for all namespaces, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClusterLimits {
    /// The TTL of jobs that are created without one.
    pub default_ttl: Option<i64>,
    /// The longest TTL.
    pub maximum_ttl: Option<i64>,
    /// The longest deadline.
    pub maximum_deadline: Option<i64>,
}

/// What holds for the jobs of a namespace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits<'a> {
    /// What the cluster sets.
    pub cluster: ClusterLimits,
    /// The name of the namespace.
    pub namespace: &'a str,
    /// What the annotations of the namespace set, if there is one that matters.
    pub annotated: Option<&'a NamespaceLimits>,
}

/// What a new job gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filled {
    /// The fields that it gets.
    pub patch: Patch,
    /// What its author should know.
    pub warnings: Vec<String>,
}

/// A number of seconds, and who says so.
#[derive(Debug, Clone, Copy)]
struct Bound<'a> {
    seconds: i64,
    source: Source<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    /// A setting of the configuration.
    Cluster(&'static str),
    /// An annotation of this namespace.
    Namespace(&'a str, &'static str),
}

impl Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(setting) => write!(f, "the cluster (setting {setting})"),
            Self::Namespace(name, annotation) => {
                write!(f, "the namespace {name:?} (annotation {annotation})")
            }
        }
    }
}

impl<'a> Limits<'a> {
    /// Whether a new job may get a TTL, or a warning about one.
    #[must_use]
    pub fn concern_ttl(&self) -> bool {
        self.concern(Field::Ttl)
    }

    /// Whether a new job may get a deadline, lose one that it got, or get a warning about one.
    #[must_use]
    pub fn concern_deadline(&self) -> bool {
        self.concern(Field::Deadline)
    }

    fn concern(&self, field: Field) -> bool {
        let of_namespace = self.annotated(field).is_some_and(|it| *it != Annotated::default());
        of_namespace
            || self.default_of_cluster(field).is_some()
            || self.most_of_cluster(field).is_some()
    }

    fn annotated(&self, field: Field) -> Option<&'a Annotated> {
        self.annotated.map(|limits| match field {
            Field::Deadline => &limits.deadline,
            Field::Ttl => &limits.ttl,
        })
    }

    fn default_of_cluster(&self, field: Field) -> Option<Bound<'a>> {
        let (seconds, setting) = match field {
            Field::Deadline => return None,
            Field::Ttl => (self.cluster.default_ttl?, "lifecycle.defaultTTLSecondsAfterFinished"),
        };
        Some(Bound { seconds, source: Source::Cluster(setting) })
    }

    fn most_of_cluster(&self, field: Field) -> Option<Bound<'a>> {
        let (seconds, setting) = match field {
            Field::Deadline => {
                (self.cluster.maximum_deadline?, "lifecycle.maximumActiveDeadlineSeconds")
            }
            Field::Ttl => (self.cluster.maximum_ttl?, "lifecycle.maximumTTLSecondsAfterFinished"),
        };
        Some(Bound { seconds, source: Source::Cluster(setting) })
    }

    /// The default, and what is to be said of an annotation that is none.
    fn default_of(&self, field: Field) -> (Option<Bound<'a>>, Option<String>) {
        let (name, annotation) = (self.namespace, field.default_annotation());
        match self.annotated(field).and_then(|annotated| annotated.default.as_ref()) {
            Some(Ok(seconds)) => {
                let source = Source::Namespace(name, annotation);
                (Some(Bound { seconds: *seconds, source }), None)
            }
            Some(Err(text)) => {
                let expected = field.expected();
                let warning = format!(
                    "the annotation {annotation} of the namespace {name:?} is {text:?}, expected \
                     {expected}: it has no effect"
                );
                (self.default_of_cluster(field), Some(warning))
            }
            None => (self.default_of_cluster(field), None),
        }
    }

    /// The maximum. An annotation that is none is an error: nobody can tell what it was to forbid.
    fn maximum_of(&self, field: Field) -> Result<Option<Bound<'a>>, FieldError> {
        let (name, annotation) = (self.namespace, field.maximum_annotation());
        let of_namespace = match self.annotated(field).and_then(|it| it.maximum.as_ref()) {
            Some(Ok(seconds)) => {
                Some(Bound { seconds: *seconds, source: Source::Namespace(name, annotation) })
            }
            Some(Err(text)) => {
                let expected = field.expected();
                let detail = format!(
                    "the annotation {annotation} of the namespace {name:?} is {text:?}, expected \
                     {expected}: nothing is admitted before whoever administers the namespace has \
                     corrected it"
                );
                return Err(FieldError::forbidden(field.path(), detail));
            }
            None => None,
        };
        let both = [of_namespace, self.most_of_cluster(field)];
        Ok(both.into_iter().flatten().min_by_key(|bound| bound.seconds))
    }

    /// What a job gets that lacks the field, and why.
    fn offer(&self, field: Field, default: Option<Bound<'a>>) -> Option<(i64, String)> {
        // An annotation that is no maximum is for the verdict to tell of.
        let maximum = self.maximum_of(field).ok()?;
        Some(match (default, maximum) {
            (None, None) => return None,
            (Some(default), Some(maximum)) if default.seconds > maximum.seconds => {
                let Bound { seconds, source } = default;
                let reason = format!(
                    "the maximum of {}; the default of {source} is {seconds}",
                    maximum.source
                );
                (maximum.seconds, reason)
            }
            (Some(Bound { seconds, source }), _) => (seconds, format!("the default of {source}")),
            (None, Some(Bound { seconds, source })) => {
                (seconds, format!("the maximum of {source}"))
            }
        })
    }
}

/// What a TrainJob gets that is to be created. `managers` says who owns which of its fields.
#[must_use]
pub fn fill_in(
    job: &TrainJob,
    limits: &Limits<'_>,
    clock: Clock,
    managers: impl FnOnce() -> Vec<Manager>,
) -> Filled {
    // A job without a spec has no place for it, and will be refused.
    if job.spec.runtime_ref == RuntimeRef::default() || is_copy(job) {
        return Filled::default();
    }
    let ttl = Field::Ttl.of_job(job).is_none().then(|| give(limits, Field::Ttl));
    let deadline = match (Field::Deadline.of_job(job), time_counts_while_it(job, clock)) {
        (None, None) => Some(give(limits, Field::Deadline)),
        (Some(seconds), Some(waits)) => Some(take_back(limits, seconds, waits, managers)),
        (None, Some(_)) | (Some(_), None) => None,
    };
    let mut filled = Filled::default();
    for Filled { patch, warnings } in ttl.into_iter().chain(deadline) {
        filled.patch.0.extend(patch.0);
        filled.warnings.extend(warnings);
    }
    filled
}

/// What is wrong with TTL and deadline of a TrainJob that is to be created.
#[must_use]
pub(super) fn create(job: &TrainJob, limits: &Limits<'_>, clock: Clock) -> Vec<FieldError> {
    let fields = Field::ALL.into_iter().filter(|_| !is_copy(job));
    let judged = fields.map(|field| {
        let waits = time_counts_while_it(job, clock).filter(|_| field == Field::Deadline);
        exceeds(limits, field, field.of_job(job), waits)
    });
    judged.flatten().collect()
}

/// What is wrong with the change of TTL and deadline from `old` to `job`.
#[must_use]
pub(super) fn update(old: &TrainJob, job: &TrainJob, limits: &Limits<'_>) -> Vec<FieldError> {
    let raised = Field::ALL.into_iter().filter(|field| {
        // A stored value that is out of range counts as unset, which is more than any.
        let before = field.of_job(old).filter(|before| *before >= field.least());
        let after = field.of_job(job);
        !is_copy(job) && before.is_some_and(|before| after.is_none_or(|after| after > before))
    });
    raised.filter_map(|field| exceeds(limits, field, field.of_job(job), None)).collect()
}

fn exceeds(
    limits: &Limits<'_>,
    field: Field,
    value: Option<i64>,
    waits: Option<&str>,
) -> Option<FieldError> {
    let Bound { seconds, source } = match limits.maximum_of(field) {
        Ok(maximum) => maximum?,
        Err(unreadable) => return Some(unreadable),
    };
    let expected = format!("expected at most {seconds}, the maximum of {source}");
    match (value, waits) {
        (Some(value), _) if value <= seconds => None,
        (Some(value), _) => Some(FieldError::invalid(field.path(), &value, expected)),
        (None, None) => Some(FieldError::required(field.path(), expected)),
        (None, Some(waits)) => {
            let detail = format!(
                "{expected}; there is no default, because the TrainJob {waits} and the time until it \
                 starts counts"
            );
            Some(FieldError::required(field.path(), detail))
        }
    }
}

fn give(limits: &Limits<'_>, field: Field) -> Filled {
    let (default, warning) = limits.default_of(field);
    let mut filled = Filled { warnings: warning.into_iter().collect(), ..Filled::default() };
    if let Some((seconds, reason)) = limits.offer(field, default) {
        let path = PointerBuf::from_tokens(["spec", field.name()]);
        filled.patch.0.push(PatchOperation::Add(AddOperation { path, value: seconds.into() }));
        let path = field.path();
        filled.warnings.push(format!("{path} is set to {seconds}, {reason}"));
    }
    filled
}

/// Takes a deadline back that an earlier call has given to the same job, before another webhook has suspended it or put it
/// into a queue, as Kueue does with jobs that name none. That its author did not give it, its managed fields tell.
fn take_back(
    limits: &Limits<'_>,
    seconds: i64,
    waits: &str,
    managers: impl FnOnce() -> Vec<Manager>,
) -> Filled {
    let field = Field::Deadline;
    let offer = limits.offer(field, limits.default_of(field).0);
    if offer.is_none_or(|(offered, _)| offered != seconds) {
        return Filled::default();
    }
    let managers = managers();
    if managers.is_empty() || managers.iter().any(|manager| field.is_owned_by(manager)) {
        return Filled::default();
    }
    let path = PointerBuf::from_tokens(["spec", field.name()]);
    let warning = format!(
        "{} is not set, because the TrainJob {waits} and the time until it starts counts",
        field.path()
    );
    Filled {
        patch: Patch(vec![PatchOperation::Remove(RemoveOperation { path })]),
        warnings: vec![warning],
    }
}

/// Why the time counts in which a new job has not started.
fn time_counts_while_it(job: &TrainJob, clock: Clock) -> Option<&'static str> {
    waits(job).filter(|_| clock == Clock::Creation)
}

/// Whether Kueue has made the job, in a worker cluster, from another one.
fn is_copy(job: &TrainJob) -> bool {
    let labels = job.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(MULTIKUEUE_ORIGIN_LABEL))
}

#[cfg(test)]
mod tests;
