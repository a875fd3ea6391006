//! The conditions of a record.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use trainjob_api::{
    lifecycle::v1alpha1::{
        record::TrainJobRecordStatus,
        record_words::{RecordCondition, RecordReason},
    },
    time::Timestamp,
};

/// Sets both conditions.
pub(super) fn set(status: &mut TrainJobRecordStatus, is_final: bool, now: Timestamp) {
    let was_final = is_true(status, RecordCondition::Final);
    let reopened = holds_reason(status, RecordCondition::Final, RecordReason::Reopened);
    let reason = match (is_final, was_final || reopened) {
        (true, _) => RecordReason::AllCounted,
        (false, true) => RecordReason::Reopened,
        (false, false) => RecordReason::Open,
    };
    put(status, RecordCondition::Final, is_final, reason, String::new(), now);
    // The gravest is the reason, and the message has all.
    let gravest =
        GRAVEST_FIRST.iter().find(|reason| status.inexact.iter().any(|it| it == reason.as_str()));
    let message = status.inexact.join(", ");
    put(
        status,
        RecordCondition::Exact,
        gravest.is_none(),
        *gravest.unwrap_or(&RecordReason::Counted),
        message,
        now,
    );
}

const GRAVEST_FIRST: [RecordReason; 6] = [
    RecordReason::Recreated,
    RecordReason::Lost,
    RecordReason::Saturated,
    RecordReason::TooManyResources,
    RecordReason::Unprotected,
    RecordReason::Observed,
];

/// Whether a condition is true.
pub(super) fn is_true(status: &TrainJobRecordStatus, of: RecordCondition) -> bool {
    status.conditions.iter().any(|it| it.type_ == of.as_str() && it.status == "True")
}

fn holds_reason(status: &TrainJobRecordStatus, of: RecordCondition, reason: RecordReason) -> bool {
    status.conditions.iter().any(|it| it.type_ == of.as_str() && it.reason == reason.as_str())
}

fn put(
    status: &mut TrainJobRecordStatus,
    of: RecordCondition,
    holds: bool,
    reason: RecordReason,
    message: String,
    now: Timestamp,
) {
    let value = if holds { "True" } else { "False" };
    let known = status.conditions.iter_mut().find(|it| it.type_ == of.as_str());
    if let Some(known) = known {
        if known.status != value {
            value.clone_into(&mut known.status);
            known.last_transition_time = Time::from(now);
        }
        reason.as_str().clone_into(&mut known.reason);
        known.message = message;
        return;
    }
    status.conditions.push(Condition {
        type_: of.as_str().into(),
        status: value.into(),
        reason: reason.as_str().into(),
        message,
        last_transition_time: Time::from(now),
        observed_generation: None,
    });
}
