//! What a failed request means to the core (`docs/accounting.md`, 7).

use std::time::Duration;

use kube::core::{Status, response::StatusCause};
use trainjob_accounting_core::{
    answer::{Failure, ForPod, for_pod},
    keeper::Answer,
};
use trainjob_engine::error::RequestError;

/// What a failure means to the core; `is_silent`: the API server does not answer anything else either.
#[must_use]
pub fn failed(error: &RequestError, is_silent: bool) -> Answer {
    let (failure, retry_after) = match error {
        RequestError::Refused(status) => (refused(status), retry_after(status)),
        RequestError::Unbuildable(_) | RequestError::Foreign { .. } => {
            (Failure::Unavailable, Duration::ZERO)
        }
        RequestError::NotLeading | RequestError::Overtaken => (Failure::Silent, Duration::ZERO),
        RequestError::TimedOut(_) | RequestError::Unreachable(_) | RequestError::BadReply(_) => {
            let failure = if is_silent { Failure::Silent } else { Failure::Unanswered };
            (failure, Duration::ZERO)
        }
    };
    Answer::Failed { failure, retry_after }
}

/// Whether a failed request to release a Pod says that there is nothing to release any more.
#[must_use]
pub fn is_gone(error: &RequestError) -> bool {
    let RequestError::Refused(status) = error else { return false };
    matches!(for_pod(refused(status)), ForPod::Released | ForPod::Absent)
}

fn refused(status: &Status) -> Failure {
    let causes = status.details.as_ref().map(|details| &details.causes[..]).unwrap_or_default();
    let has_cause = |is_it: fn(&StatusCause) -> bool| causes.iter().any(is_it);
    match status.code {
        404 if is_about_namespace(status) => Failure::NoNamespace,
        // Of a kind that is not served, it says 404 and gives no reason.
        404 if status.reason == "NotFound" && !names_no_object(status) => Failure::NotFound,
        404 => Failure::NotServed,
        // Whose it is shows when it is read.
        409 if status.is_already_exists() => Failure::AlreadyExists { same: true },
        409 if status.message.contains("Precondition failed: UID") => Failure::OtherUid,
        409 => Failure::Conflict,
        422 if has_cause(|cause| cause.field == "metadata.uid") => Failure::InvalidUid,
        403 if has_cause(|cause| cause.reason == "NamespaceTerminating") => {
            Failure::NamespaceTerminating
        }
        403 => Failure::Forbidden,
        401 | 408 | 429 => Failure::Unavailable,
        400..=499 => Failure::Invalid,
        _ => Failure::Unavailable,
    }
}

/// Whether a 404 is about the namespace of the object.
fn is_about_namespace(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| details.kind == "namespaces")
}

/// Whether a 404 is about the path and not about an object.
fn names_no_object(status: &Status) -> bool {
    status.details.as_ref().is_none_or(|details| details.name.is_empty())
}

fn retry_after(status: &Status) -> Duration {
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(seconds.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_mean_what_the_table_of_the_page_says() {
        let causes = |field: &str, reason: &str| json!([{"field": field, "reason": reason}]);
        for (code, reason, details, message, expected) in [
            (404, "NotFound", json!({"name": "llm-1"}), "", Failure::NotFound),
            (404, "NotFound", json!({"name": "a", "kind": "namespaces"}), "", Failure::NoNamespace),
            (404, "NotFound", json!({}), "the server could not find", Failure::NotServed),
            (404, "", json!({}), "404 page not found", Failure::NotServed),
            (409, "AlreadyExists", json!({}), "", Failure::AlreadyExists { same: true }),
            (409, "Conflict", json!({}), "the object has been modified", Failure::Conflict),
            (
                409,
                "Conflict",
                json!({}),
                "Precondition failed: UID in precondition: a, UID in object meta: b",
                Failure::OtherUid,
            ),
            (
                422,
                "Invalid",
                json!({"causes": causes("metadata.uid", "")}),
                "",
                Failure::InvalidUid,
            ),
            (422, "Invalid", json!({"causes": causes("spec", "")}), "", Failure::Invalid),
            (
                403,
                "Forbidden",
                json!({"causes": causes("", "NamespaceTerminating")}),
                "",
                Failure::NamespaceTerminating,
            ),
            (403, "Forbidden", json!({}), "exceeded quota", Failure::Forbidden),
            (400, "BadRequest", json!({}), "", Failure::Invalid),
            (429, "TooManyRequests", json!({"retryAfterSeconds": 7}), "", Failure::Unavailable),
            (500, "InternalError", json!({}), "", Failure::Unavailable),
        ] {
            let status =
                json!({"code": code, "reason": reason, "details": details, "message": message});
            let status: Status = serde_json::from_value(status).unwrap();
            assert_eq!(refused(&status), expected, "{code} {reason} {message}");
            let gone =
                [Failure::NotFound, Failure::NoNamespace, Failure::OtherUid, Failure::InvalidUid];
            let error = RequestError::Refused(Box::new(status.clone()));
            assert_eq!(is_gone(&error), gone.contains(&expected), "{code} {reason} {message}");
            let waits = retry_after(&status).as_secs();
            assert_eq!(waits, if code == 429 { 7 } else { 0 });
        }
    }
}
