//! TTL and deadline: whether they may change, and what their author should know.
//!
//! That they are not negative is for the schema to say, which also forbids the change of a deadline, but
//! not that it is removed and added again. An update that merely lacks one of them has got it back
//! [before](super::dropped_fields) it is judged; one that still lacks it gives it up.

pub use trainjob_api::crd::FieldUpdates;
use trainjob_api::{
    TrainJob,
    constants::{KUEUE_QUEUE_LABEL, MANAGED_BY},
};

use super::field::FieldError;
use crate::lifecycle::deadline::Clock;

pub(super) const DEADLINE: &str = "spec.activeDeadlineSeconds";
pub(super) const TTL: &str = "spec.ttlSecondsAfterFinished";
/// A TTL below this is over before a person has looked.
const A_MOMENT: i32 = 60;

/// One of the two fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Deadline,
    Ttl,
}

impl Field {
    pub(super) const ALL: [Self; 2] = [Self::Deadline, Self::Ttl];

    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Deadline => DEADLINE,
            Self::Ttl => TTL,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Deadline => "activeDeadlineSeconds",
            Self::Ttl => "ttlSecondsAfterFinished",
        }
    }

    /// What a job says, which may be out of range.
    pub(super) fn of_job(self, job: &TrainJob) -> Option<i64> {
        match self {
            Self::Deadline => job.spec.active_deadline_seconds,
            Self::Ttl => job.spec.ttl_seconds_after_finished.map(i64::from),
        }
    }
}

/// What forbids the change of the two fields from `old` to `job`.
pub(super) fn change(old: &TrainJob, job: &TrainJob, updates: FieldUpdates) -> Vec<FieldError> {
    let (old, new) = (&old.spec, &job.spec);
    let ttl = |spec: Option<i32>| spec.map(i64::from);
    let changes = [
        (DEADLINE, old.active_deadline_seconds, new.active_deadline_seconds),
        (TTL, ttl(old.ttl_seconds_after_finished), ttl(new.ttl_seconds_after_finished)),
    ];
    let forbidden = changes.into_iter().filter(|_| updates == FieldUpdates::Immutable);
    forbidden.filter_map(|(path, old, new)| immutable(path, old, new)).collect()
}

/// Whether a value means anything; one that the schema would refuse counts as unset.
pub(super) fn is_in_range(path: &str, value: i64) -> bool {
    match path {
        DEADLINE => value >= 1,
        _ => (0..=i64::from(i32::MAX)).contains(&value),
    }
}

fn immutable(path: &str, old: Option<i64>, new: Option<i64>) -> Option<FieldError> {
    const WAY_OUT: &str = "or create another TrainJob";
    let detail = match (old, new) {
        (Some(old), Some(new)) if old != new => {
            format!("field is immutable: keep {old} instead of {new}, {WAY_OUT}")
        }
        (Some(old), None) if is_in_range(path, old) => {
            format!("field is immutable: keep {old}, {WAY_OUT}")
        }
        (None, Some(_)) => {
            format!("field is immutable and was not set on creation: leave it out, {WAY_OUT}")
        }
        _ => return None,
    };
    Some(FieldError::forbidden(path, detail))
}

/// What the author of a new job should know.
pub(super) fn warnings(job: &TrainJob, clock: Clock) -> Vec<String> {
    let ttl = job.spec.ttl_seconds_after_finished.filter(|ttl| *ttl < A_MOMENT);
    let ttl = ttl.map(|ttl| {
        format!(
            "{TTL} is {ttl}: the TrainJob may be gone before anyone looks at it; \
             use {A_MOMENT} or more to read its status"
        )
    });
    let ours = job.spec.managed_by.as_deref().is_none_or(|manager| manager == MANAGED_BY);
    let applies = ours && clock == Clock::Creation;
    let deadline = job.spec.active_deadline_seconds.filter(|_| applies);
    let deadline = deadline.zip(waits(job)).map(|(deadline, why)| {
        format!(
            "{DEADLINE} is {deadline} and counts from the creation of the TrainJob, which {why}: \
             the time until it starts counts, too"
        )
    });
    ttl.into_iter().chain(deadline).collect()
}

/// Why a new job does not start at once.
pub(super) fn waits(job: &TrainJob) -> Option<&'static str> {
    let labels = job.metadata.labels.as_ref();
    if labels.is_some_and(|labels| labels.contains_key(KUEUE_QUEUE_LABEL)) {
        Some("waits in a queue")
    } else {
        job.spec.suspend.unwrap_or(false).then_some("is suspended")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::testing::{self, texts};

    #[test]
    fn the_two_fields_are_immutable_unless_the_cluster_says_otherwise() {
        for path in [DEADLINE, TTL] {
            let field = path.strip_prefix("spec.").unwrap();
            for (old, new, expected) in [
                (json!(5), json!(5), None),
                (json!(null), json!(null), None),
                (
                    json!(5),
                    json!(6),
                    Some("field is immutable: keep 5 instead of 6, or create another TrainJob"),
                ),
                (
                    json!(5),
                    json!(null),
                    Some("field is immutable: keep 5, or create another TrainJob"),
                ),
                (
                    json!(null),
                    json!(6),
                    Some(
                        "field is immutable and was not set on creation: leave it out, or create another TrainJob",
                    ),
                ),
            ] {
                let job = |value: &Value| testing::job(&json!({field: value}));
                let expected = expected.map(|it| format!("{path}: Forbidden: {it}"));
                let found = |updates| texts(&change(&job(&old), &job(&new), updates));
                let expected: Vec<_> = expected.into_iter().collect();
                assert_eq!(found(FieldUpdates::Immutable), expected, "{old} to {new}");
                assert_eq!(found(FieldUpdates::Mutable), [""; 0], "{old} to {new}");
            }
        }
    }

    #[test]
    fn a_short_ttl_gets_a_warning() {
        for (ttl, warned) in
            [(json!(null), false), (json!(0), true), (json!(59), true), (json!(60), false)]
        {
            let job = testing::job(&json!({"ttlSecondsAfterFinished": ttl}));
            let expected = format!(
                "spec.ttlSecondsAfterFinished is {ttl}: the TrainJob may be gone before anyone looks at it; use 60 or more to read its status"
            );
            let expected = if warned { vec![expected] } else { vec![] };
            assert_eq!(warnings(&job, Clock::Creation), expected);
        }
    }

    #[test]
    fn a_deadline_that_runs_while_the_job_waits_gets_a_warning() {
        let job = |deadline: Value, suspend: bool, queue: bool| {
            let mut job =
                testing::job(&json!({"activeDeadlineSeconds": deadline, "suspend": suspend}));
            let labels = queue.then(|| [(KUEUE_QUEUE_LABEL.to_owned(), "team".to_owned())].into());
            job.metadata.labels = labels;
            job
        };
        let text = |why: &str| {
            format!(
                "spec.activeDeadlineSeconds is 9 and counts from the creation of the TrainJob, which {why}: the time until it starts counts, too"
            )
        };
        for (job, expected) in [
            (job(json!(9), false, false), vec![]),
            (job(json!(9), true, false), vec![text("is suspended")]),
            (job(json!(9), false, true), vec![text("waits in a queue")]),
            (job(json!(9), true, true), vec![text("waits in a queue")]),
            (job(json!(null), true, true), vec![]),
        ] {
            assert_eq!(warnings(&job, Clock::Creation), expected);
            assert_eq!(warnings(&job, Clock::LastResume), [""; 0]);
        }
        // Its manager does not know of deadlines of this operator.
        let mut elsewhere = job(json!(9), true, true);
        elsewhere.spec.managed_by = Some("kueue.x-k8s.io/multikueue".into());
        assert_eq!(warnings(&elsewhere, Clock::Creation), [""; 0]);
    }
}
