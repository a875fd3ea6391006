//! How long a request waits for its answer.
//!
//! A connection may be dead and not say so. Whoever waits on it waits for [`REQUEST_TIMEOUT`], which must
//! be long enough for slow admission webhooks. A deadline must not wait so long (`docs/semantics.md`,
//! §6): what is under way when it comes due is given up soon, and what enforces it is not waited for.

use std::time::Duration;

use tokio::task::JoinHandle;
use trainjob_process::client::REQUEST_TIMEOUT;

use crate::error::RequestError;

/// The longest that a deadline, once due, waits for a request that gets no answer. With the longest wait
/// before the next try it is less than the ten seconds in which a dead connection is replaced.
const DETACH_AFTER: Duration = Duration::from_secs(4);

/// Gives a request its time limit.
///
/// # Errors
///
/// What the request fails with, or that it took too long.
pub async fn timed<T>(
    request: impl Future<Output = Result<T, impl Into<RequestError>>>,
) -> Result<T, RequestError> {
    within(REQUEST_TIMEOUT, request).await
}

/// Gives a request its time limit, or a shorter one when the job's deadline comes due meanwhile, which is after `due_in`.
///
/// # Errors
///
/// What the request fails with, or that it took too long.
pub async fn before<T>(
    due_in: Option<Duration>,
    request: impl Future<Output = Result<T, RequestError>>,
) -> Result<T, RequestError> {
    let limit = due_in.map_or(REQUEST_TIMEOUT, |due_in| due_in.saturating_add(DETACH_AFTER));
    within(limit.min(REQUEST_TIMEOUT), request).await
}

/// Waits for a request for a short while only, after which it has the rest of its time to itself, because
/// an admission webhook may need that. Whoever asked decides anew meanwhile, and asks on another
/// connection: so the request must be fenced.
///
/// # Errors
///
/// What the request fails with, or that its answer was not waited for.
pub async fn detach_after<T: Send + 'static>(
    request: impl Future<Output = Result<T, RequestError>> + Send + 'static,
) -> Result<T, RequestError> {
    match or_later(request).await? {
        Answer::Now(answer) => Ok(answer),
        Answer::Later(_) => Err(RequestError::TimedOut(DETACH_AFTER)),
    }
}

/// Waits for a request for a short while only, like [`detach_after`]; but its answer is of use whenever it comes.
///
/// # Errors
///
/// What the request fails with while it is waited for.
pub async fn or_later<T: Send + 'static>(
    request: impl Future<Output = Result<T, RequestError>> + Send + 'static,
) -> Result<Answer<T>, RequestError> {
    // In a box, for the same reason as a pass (`controller.rs`).
    let mut asked = tokio::spawn(Box::pin(timed(request)));
    match tokio::time::timeout(DETACH_AFTER, &mut asked).await {
        Ok(answer) => Ok(Answer::Now(joined(answer)?)),
        Err(_) => Ok(Answer::Later(LateAnswer(asked))),
    }
}

/// An answer that came in time, or one that is still to come.
#[derive(Debug)]
pub enum Answer<T> {
    /// It is there.
    Now(T),
    /// It is still to come.
    Later(LateAnswer<T>),
}

/// An answer that is still to come. It comes, or fails to, within [`REQUEST_TIMEOUT`].
#[derive(Debug)]
pub struct LateAnswer<T>(JoinHandle<Result<T, RequestError>>);

impl<T> LateAnswer<T> {
    /// Waits for it.
    ///
    /// # Errors
    ///
    /// What the request fails with, or that it took too long.
    pub async fn come(self) -> Result<T, RequestError> {
        joined(self.0.await)
    }
}

/// A task that broke off has no answer.
fn joined<T>(
    answer: Result<Result<T, RequestError>, tokio::task::JoinError>,
) -> Result<T, RequestError> {
    answer.unwrap_or(Err(RequestError::TimedOut(REQUEST_TIMEOUT)))
}

/// Gives a request this time limit.
///
/// # Errors
///
/// What the request fails with, or that it took too long.
pub async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, impl Into<RequestError>>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(limit, request).await {
        Ok(reply) => reply.map_err(Into::into),
        Err(_) => Err(RequestError::TimedOut(limit)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        sync::oneshot,
        time::{Instant, sleep},
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_stops_a_job_is_waited_for_briefly_and_has_the_time_a_webhook_needs() {
        for (seconds, waited, ends) in [(1, 1, true), (9, 4, true), (1_000, 4, false)] {
            let (begin, (end, ended)) = (Instant::now(), oneshot::channel());
            let answer = detach_after(async move {
                sleep(Duration::from_secs(seconds)).await;
                let _ = end.send(());
                Ok(())
            });
            assert_eq!(answer.await.is_ok(), seconds == waited, "{seconds}");
            assert_eq!(begin.elapsed().as_secs(), waited, "{seconds}");
            assert_eq!(ended.await.is_ok(), ends, "{seconds}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answer_that_takes_longer_than_work_waits_comes_later() {
        let answer_after = |seconds| async move {
            sleep(Duration::from_secs(seconds)).await;
            Ok(seconds)
        };
        assert!(matches!(or_later(answer_after(1)).await, Ok(Answer::Now(1))));
        for (seconds, comes) in [(9, Some(9)), (1_000, None)] {
            let begin = Instant::now();
            let Ok(Answer::Later(late)) = or_later(answer_after(seconds)).await else {
                panic!("waited for {seconds} s");
            };
            assert_eq!(begin.elapsed(), DETACH_AFTER);
            assert_eq!(late.come().await.ok(), comes);
            assert!(begin.elapsed() <= REQUEST_TIMEOUT);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_when_the_deadline_comes_due_is_given_up_soon() {
        for (due_in, seconds) in [(None, 15), (Some(3_600), 15), (Some(5), 9), (Some(0), 4)] {
            let begin = Instant::now();
            let due_in = due_in.map(Duration::from_secs);
            let never = std::future::pending::<Result<(), RequestError>>();
            let unanswered = before(due_in, never).await;
            assert!(matches!(unanswered, Err(RequestError::TimedOut(_))));
            assert_eq!(begin.elapsed().as_secs(), seconds, "{due_in:?}");
        }
    }
}
