//! What follows from the replicated jobs: sums over all, and what of it was lost (AW1, AW2).

use trainjob_api::lifecycle::v1alpha1::{
    record::{Attempt, AttemptCause, PodSums, Seconds, Totals, TrainJobRecordStatus},
    record_words::{DeletedReason, FailedReason, Outcome},
};

use super::{
    key::{Key, key_of},
    sums,
};
use crate::{amounts::MOST, settings::Settings};

/// The totals of a record, and whether there was room for all resources.
pub(super) fn of(
    status: &TrainJobRecordStatus,
    outcome: Outcome,
    settings: &Settings,
) -> (Totals, bool) {
    let mut totals = Totals { restarts: status.totals.restarts, ..Totals::default() };
    let attempts = || status.replicated_jobs.iter().flat_map(|job| &job.attempts);
    let last = attempts().map(key_of).max();
    for attempt in attempts() {
        let wasted = wasted(attempt, last, outcome);
        add_pods(&mut totals, &attempt.sums, wasted);
        let gpus = sums::gpu_seconds(wasted, settings);
        if gpus > 0 {
            let cause = cause(&status.causes, attempt);
            sums::add_to(&mut totals.wasted_by_cause, cause, gpus);
        }
    }
    for earlier in status.replicated_jobs.iter().filter_map(|job| job.earlier.as_ref()) {
        add_pods(&mut totals, &earlier.sums, &earlier.sums.seconds);
        sums::add_all(&mut totals.wasted_by_cause, &earlier.wasted_by_cause);
    }
    totals.wasted_by_cause.retain(|_, seconds| *seconds > 0);
    let dropped = sums::cut(&mut totals.seconds, settings);
    let dropped = sums::cut(&mut totals.wasted, settings) || dropped;
    totals.gpu_seconds = sums::gpu_seconds(&totals.seconds, settings);
    totals.wasted_gpu_seconds = sums::gpu_seconds(&totals.wasted, settings);
    totals.gpu_hours = hours(totals.gpu_seconds);
    totals.wasted_gpu_hours = hours(totals.wasted_gpu_seconds);
    (totals, !dropped)
}

/// What of an attempt was lost (AW2): all of it, unless it is the last of a job that may still succeed, or has; of that,
/// what its failed and suspended Pods used.
const fn wasted(attempt: &Attempt, last: Option<Key>, outcome: Outcome) -> &Seconds {
    let is_last = match last {
        Some((job_set, restart)) => attempt.job_set == job_set && attempt.restart == restart,
        None => false,
    };
    match outcome {
        Outcome::Running | Outcome::Complete if is_last => &attempt.sums.wasted,
        Outcome::Running
        | Outcome::Complete
        | Outcome::Failed
        | Outcome::DeadlineExceeded
        | Outcome::Deleted => &attempt.sums.seconds,
    }
}

/// Why an attempt ended. One that is too old to have an entry still has the reasons of its Pods.
pub(super) fn cause<'a>(causes: &'a [AttemptCause], attempt: &Attempt) -> &'a str {
    let known = causes.iter().find(|it| (it.job_set, it.restart) == key_of(attempt));
    if let Some(known) = known {
        return &known.reason;
    }
    let reasons = &attempt.sums.reasons;
    let failed = FailedReason::ALL.iter().map(|reason| reason.as_str());
    let failed = failed.filter(|reason| reasons.contains_key(*reason)).min();
    let suspended = DeletedReason::Suspended.as_str();
    let stopped =
        if reasons.contains_key(suspended) { suspended } else { DeletedReason::Stopped.as_str() };
    failed.filter(|_| attempt.sums.pods.failed > 0).unwrap_or(stopped)
}

fn add_pods(totals: &mut Totals, pods: &PodSums, lost: &Seconds) {
    sums::add_pods(&mut totals.pods, &pods.pods);
    sums::add_all(&mut totals.seconds, &pods.seconds);
    sums::add_all(&mut totals.wasted, lost);
}

/// Seconds in hours, with two digits, cut off.
#[must_use]
pub fn hours(seconds: u64) -> String {
    let hundredths = u128::from(seconds) * 100 / 3_600;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Whether a number is the largest that can be stored, so that what came after it is missing.
pub(super) fn is_saturated(totals: &Totals) -> bool {
    totals.gpu_seconds == MOST || totals.seconds.values().any(|seconds| *seconds == MOST)
}
