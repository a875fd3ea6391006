//! Requests to the API server, which all have a time limit, and what their failures mean.

use std::time::Duration;

use kube::core::Status;
use thiserror::Error;
use trainjob_process::describe;

/// How long a request waits for its answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Who the API server is told that it is.
pub(super) const FIELD_MANAGER: &str = "trainjob-webhook";

/// Why a request failed.
#[derive(Debug, Error)]
pub(super) enum RequestError {
    /// The API server refused it, or something behind the API server did.
    #[error("{}", describe(.0))]
    Refused(Box<Status>),
    /// There was no answer in time.
    #[error("no answer from the API server within {LIMIT:?}")]
    TimedOut,
    /// The API server could not be reached, or its answer makes no sense.
    #[error("cannot reach the API server: {0}")]
    Failed(#[source] kube::Error),
}

impl RequestError {
    /// Whether it was decided on an old version: somebody else was faster.
    pub(super) fn is_conflict(&self) -> bool {
        // A JSON patch whose test fails is said to be unprocessable.
        matches!(self, Self::Refused(status) if matches!(status.code, 404 | 409 | 422))
    }
}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            _ => Self::Failed(error),
        }
    }
}

/// Gives a request its time limit.
pub(super) async fn timed<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(LIMIT, request).await {
        Ok(reply) => Ok(reply?),
        Err(_) => Err(RequestError::TimedOut),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_was_slower_decides_anew_and_everything_else_is_a_failure() {
        for (code, conflict) in
            [(409, true), (422, true), (404, true), (403, false), (401, false), (500, false)]
        {
            let status: Status = serde_json::from_value(json!({ "code": code })).unwrap();
            let error = RequestError::from(kube::Error::Api(status.boxed()));
            assert_eq!(error.is_conflict(), conflict, "{code}");
        }
        assert!(!RequestError::TimedOut.is_conflict());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_not_answered_is_given_up() {
        let unanswered = timed(std::future::pending::<Result<(), kube::Error>>()).await;
        assert!(matches!(unanswered, Err(RequestError::TimedOut)));
    }
}
