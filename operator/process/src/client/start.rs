//! A time limit for starting a watch or a list: from the request until the head of its answer.
//!
//! The client library limits how long a watch that has begun may be silent, but not how long it may take to begin. An
//! API server that accepts the request and never answers would end a watch for good. The list that it begins with has no
//! limit at all. What follows the head has none here, and most other requests have one where they are sent.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response};
use thiserror::Error;
use tokio::time::timeout;
use tower::{BoxError, Layer, Service};

use crate::metrics::requests::is_watch;

/// How long a watch may take to begin, connecting included. The API server sends the head of the answer at once; only
/// one that is overloaded keeps requests waiting.
const WATCH_START: Duration = Duration::from_secs(10);

/// A request did not begin to be answered in time.
#[derive(Debug, Error)]
#[error("the API server did not begin to answer within {0:?}")]
struct NotBegun(Duration);

/// Gives requests a time limit to begin in.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitStart {
    /// The limit of what is no watch, if there is one.
    pub(super) others: Option<Duration>,
}

/// A client whose requests begin in time or fail.
#[derive(Debug, Clone)]
pub(super) struct Limited<S> {
    inner: S,
    limits: LimitStart,
}

impl<S> Layer<S> for LimitStart {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited { inner, limits: *self }
    }
}

impl<S, A, B> Service<Request<A>> for Limited<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let is_watch = is_watch(request.uri().query());
        let limit = if is_watch { Some(WATCH_START) } else { self.limits.others };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let Some(limit) = limit else { return answer.await.map_err(Into::into) };
            match timeout(limit, answer).await {
                Ok(answer) => answer.map_err(Into::into),
                Err(_) => Err(NotBegun(limit).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tokio::time::{Instant, sleep};
    use tower::service_fn;

    use super::*;

    const JOBS: &str = "/apis/trainer.kubeflow.org/v1alpha1/trainjobs";

    /// Asks an API server that takes so long, and returns whether there was an answer.
    async fn is_answered(limits: LimitStart, query: &str, seconds: u64) -> bool {
        let slow = service_fn(move |_: Request<()>| async move {
            sleep(Duration::from_secs(seconds)).await;
            Ok::<_, Infallible>(Response::new(()))
        });
        let request = Request::get(format!("{JOBS}{query}")).body(()).unwrap();
        limits.layer(slow).call(request).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn watch_that_does_not_begin_in_time_fails_and_so_does_a_list_where_it_has_a_limit() {
        let (unlimited, limit) = (None, Some(Duration::from_secs(30)));
        for (others, query, seconds, ends_after) in [
            (unlimited, "?watch=true&resourceVersion=5", 9, None),
            (unlimited, "?watch=true&resourceVersion=5", 11, Some(WATCH_START)),
            (limit, "?watch=true&resourceVersion=5", 10_000, Some(WATCH_START)),
            (unlimited, "?limit=500", 10_000, None),
            (unlimited, "/watch", 11, None),
            (limit, "?limit=500", 29, None),
            (limit, "?limit=500", 31, limit),
            (limit, "", 10_000, limit),
        ] {
            let begin = Instant::now();
            let is_answered = is_answered(LimitStart { others }, query, seconds).await;
            assert_eq!(is_answered, ends_after.is_none(), "{query} after {seconds} s");
            let took = ends_after.unwrap_or(Duration::from_secs(seconds));
            assert_eq!(begin.elapsed(), took, "{query} after {seconds} s");
        }
    }
}
