//! What can go wrong with a request, and what that means for trying again. Classified once, here.

use std::time::Duration;

use kube::core::Status;
use thiserror::Error;
use trainjob_core::{
    facts::ObjectKey,
    pass::{self, Class},
};
use trainjob_process::describe;

/// What the API server says when it refuses an object whose owner is of a kind that it has not discovered
/// yet. It gives no reason but Forbidden, which a missing permission has, too.
const UNDISCOVERED: &str =
    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping";

/// Why a request failed.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The API server refused it, or something behind the API server did.
    #[error("{}", describe(.0))]
    Refused(Box<Status>),
    /// There was no answer in time.
    #[error("no answer from the API server within {0:?}")]
    TimedOut(Duration),
    /// The API server could not be reached, or the connection broke.
    #[error("cannot reach the API server: {0}")]
    Unreachable(#[source] kube::Error),
    /// The reply is not what it should be.
    #[error("the API server's reply makes no sense: {0}")]
    BadReply(#[source] kube::Error),
    /// There is nothing to send: what belongs in it could not be made.
    #[error("cannot build the request: {0}")]
    Unbuildable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another process acts in the place of this one: nothing was sent.
    #[error("this process does not lead")]
    NotLeading,
    /// It had to wait for the configured rate until the job's deadline came due, which goes first: nothing was sent.
    #[error("the job's deadline came due before a request was allowed")]
    Overtaken,
    /// An object of the name that was to be created is there and is not ours.
    #[error("{kind} {key} exists and does not belong to this TrainJob")]
    Foreign {
        /// Kind of the object.
        kind: &'static str,
        /// Its namespace and name.
        key: ObjectKey,
    },
}

/// Why a request failed, as metrics tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureReason {
    /// 403: a permission is missing, or an admission webhook refuses.
    Forbidden,
    /// Any other answer that says the request is at fault.
    Denied,
    /// There are too many requests.
    Throttled,
    /// The API server, or something behind it, does not work.
    Unavailable,
    /// There was no answer.
    Unanswered,
    /// The answer makes no sense.
    Other,
}

impl FailureReason {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Forbidden,
        Self::Denied,
        Self::Throttled,
        Self::Unavailable,
        Self::Unanswered,
        Self::Other,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Denied => "denied",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::Unanswered => "unanswered",
            Self::Other => "other",
        }
    }
}

impl RequestError {
    /// Why it failed; `None` where that belongs to normal life: what it was about has changed or is gone,
    /// its namespace is going, another process leads, or a deadline goes first.
    #[must_use]
    pub fn reason(&self) -> Option<FailureReason> {
        match self {
            Self::Refused(status) => match (self.class(), status.code) {
                (Class::Conflict | Class::Gone | Class::Exists | Class::NamespaceGoing, _) => None,
                (Class::Throttled(_), _) => Some(FailureReason::Throttled),
                (_, 403) => Some(FailureReason::Forbidden),
                (Class::Denied | Class::KindUndiscovered, _) => Some(FailureReason::Denied),
                (Class::Transient, _) => Some(FailureReason::Unavailable),
            },
            Self::TimedOut(_) | Self::Unreachable(_) => Some(FailureReason::Unanswered),
            Self::BadReply(_) | Self::Unbuildable(_) | Self::Foreign { .. } => {
                Some(FailureReason::Other)
            }
            Self::NotLeading | Self::Overtaken => None,
        }
    }

    /// What the failure means to a pass.
    #[must_use]
    pub fn failure(&self) -> pass::Failure {
        let reached = !matches!(self, Self::Unreachable(_) | Self::NotLeading | Self::Overtaken);
        pass::Failure { class: self.class(), reached }
    }

    /// Whether the API server has looked for the object and there is none. Of a kind that it does not serve yet, it
    /// says 404 and gives no reason.
    #[must_use]
    pub fn says_absent(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 404 && status.reason == "NotFound")
    }

    /// What the failure means for trying again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Refused(status) => class_of(status),
            Self::TimedOut(_)
            | Self::Unreachable(_)
            | Self::BadReply(_)
            | Self::Unbuildable(_)
            | Self::NotLeading
            | Self::Overtaken => Class::Transient,
            Self::Foreign { .. } => Class::Denied,
        }
    }
}

fn class_of(status: &Status) -> Class {
    let details = status.details.as_ref();
    let going = |cause: &kube::core::response::StatusCause| cause.reason == "NamespaceTerminating";
    match status.code {
        409 if status.is_already_exists() => Class::Exists,
        409 => Class::Conflict,
        // Of a kind that is not served it says 404, too, without a reason.
        404 if status.reason != "NotFound" => Class::Transient,
        404 | 410 => Class::Gone,
        429 => {
            let seconds = details.map_or(1, |details| details.retry_after_seconds.max(1));
            Class::Throttled(Duration::from_secs(u64::from(seconds)))
        }
        403 if details.is_some_and(|details| details.causes.iter().any(going)) => {
            Class::NamespaceGoing
        }
        403 if status.message.contains(UNDISCOVERED) => Class::KindUndiscovered,
        401 | 408 => Class::Transient,
        400..=499 => Class::Denied,
        _ => Class::Transient,
    }
}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Self::BadReply(error),
            _ => Self::Unreachable(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(status: serde_json::Value) -> Class {
        let status: Status = serde_json::from_value(status).unwrap();
        RequestError::Refused(status.boxed()).class()
    }

    #[test]
    fn every_reply_has_a_class() {
        for (code, reason, expected) in [
            (409, "Conflict", Class::Conflict),
            (409, "AlreadyExists", Class::Exists),
            (404, "NotFound", Class::Gone),
            (404, "", Class::Transient),
            (410, "Gone", Class::Gone),
            (403, "Forbidden", Class::Denied),
            (422, "Invalid", Class::Denied),
            (400, "BadRequest", Class::Denied),
            (401, "Unauthorized", Class::Transient),
            (408, "Timeout", Class::Transient),
            (429, "TooManyRequests", Class::Throttled(Duration::from_secs(1))),
            (500, "InternalError", Class::Transient),
            (503, "ServiceUnavailable", Class::Transient),
            (504, "Timeout", Class::Transient),
        ] {
            let class = refused(json!({ "code": code, "reason": reason }));
            assert_eq!(class, expected, "{code} {reason}");
        }
    }

    #[test]
    fn an_object_is_absent_only_if_the_api_server_says_so_of_the_object() {
        for (code, reason, absent) in [
            (404, "NotFound", true),
            (404, "Failed to parse error data", false),
            (410, "Gone", false),
            (503, "ServiceUnavailable", false),
        ] {
            let status = serde_json::from_value(json!({ "code": code, "reason": reason })).unwrap();
            let error = RequestError::Refused(Status::boxed(status));
            assert_eq!(error.says_absent(), absent, "{code} {reason}");
        }
        assert!(!RequestError::TimedOut(Duration::ZERO).says_absent());
    }

    #[test]
    fn what_is_no_failure_is_not_counted_as_one() {
        let of = |code: u16, reason: &str| {
            let status: Status =
                serde_json::from_value(json!({ "code": code, "reason": reason })).unwrap();
            RequestError::Refused(status.boxed()).reason()
        };
        for (code, reason, expected) in [
            (409, "Conflict", None),
            (409, "AlreadyExists", None),
            (404, "NotFound", None),
            (403, "Forbidden", Some(FailureReason::Forbidden)),
            (400, "BadRequest", Some(FailureReason::Denied)),
            (422, "Invalid", Some(FailureReason::Denied)),
            (429, "TooManyRequests", Some(FailureReason::Throttled)),
            (401, "Unauthorized", Some(FailureReason::Unavailable)),
            (503, "ServiceUnavailable", Some(FailureReason::Unavailable)),
        ] {
            assert_eq!(of(code, reason), expected, "{code} {reason}");
        }
        let timed_out = RequestError::TimedOut(Duration::ZERO);
        assert_eq!(timed_out.reason(), Some(FailureReason::Unanswered));
        for nothing_sent in [RequestError::NotLeading, RequestError::Overtaken] {
            assert_eq!(nothing_sent.reason(), None);
            let failure = nothing_sent.failure();
            assert!(failure.class == Class::Transient && !failure.reached);
        }
    }

    #[test]
    fn only_the_refusal_for_want_of_the_kind_is_waited_out() {
        // As API servers of 1.31 and 1.36 say it.
        let undiscovered = "configmaps \"job-runtime-snapshot\" is forbidden: cannot set blockOwnerDeletion in \
            this case because cannot find RESTMapping for APIVersion trainer.kubeflow.org/v1alpha1 Kind \
            TrainJob: no matches for kind \"TrainJob\" in version \"trainer.kubeflow.org/v1alpha1\"";
        let no_right = "configmaps \"job-runtime-snapshot\" is forbidden: cannot set blockOwnerDeletion if an \
            ownerReference refers to a resource you can't set finalizers on: , <nil>";
        for (code, message, expected) in [
            (403, undiscovered, Class::KindUndiscovered),
            (403, no_right, Class::Denied),
            (403, "jobsets.jobset.x-k8s.io is forbidden: User cannot create", Class::Denied),
            (422, undiscovered, Class::Denied),
            (500, undiscovered, Class::Transient),
        ] {
            let class = refused(json!({ "code": code, "message": message }));
            assert_eq!(class, expected, "{code} {message}");
        }
    }

    #[test]
    fn retry_after_and_a_terminating_namespace_are_understood() {
        let later = json!({ "code": 429, "details": { "retryAfterSeconds": 7 } });
        assert_eq!(refused(later), Class::Throttled(Duration::from_secs(7)));
        let causes = json!([{ "reason": "NamespaceTerminating" }]);
        let going = json!({ "code": 403, "reason": "Forbidden", "details": { "causes": causes } });
        assert_eq!(refused(going), Class::NamespaceGoing);
    }
}
