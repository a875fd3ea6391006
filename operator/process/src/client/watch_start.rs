//! A time limit for starting a watch: from the request until the head of its answer.
//!
//! The client library limits how long a watch that has begun may be silent, but not how long it may take to begin. An
//! API server that accepts the request and never answers would end a watch for good. What follows the head has no
//! limit here, and neither have other requests: each has one where it is sent.

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

/// A watch did not begin in time.
#[derive(Debug, Error)]
#[error("the API server did not begin to answer a watch within {WATCH_START:?}")]
struct NotBegun;

/// Gives watches a time limit to begin in.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitWatchStart;

/// A client whose watches begin in time or fail.
#[derive(Debug, Clone)]
pub(super) struct Limited<S>(S);

impl<S> Layer<S> for LimitWatchStart {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited(inner)
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
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let is_watch = is_watch(request.uri().query());
        let answer = self.0.call(request);
        Box::pin(async move {
            if !is_watch {
                return answer.await.map_err(Into::into);
            }
            match timeout(WATCH_START, answer).await {
                Ok(answer) => answer.map_err(Into::into),
                Err(_) => Err(NotBegun.into()),
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
    async fn is_answered(query: &str, seconds: u64) -> bool {
        let slow = service_fn(move |_: Request<()>| async move {
            sleep(Duration::from_secs(seconds)).await;
            Ok::<_, Infallible>(Response::new(()))
        });
        let request = Request::get(format!("{JOBS}{query}")).body(()).unwrap();
        LimitWatchStart.layer(slow).call(request).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_watch_that_does_not_begin_in_time_fails() {
        for (query, seconds, expected) in [
            ("?watch=true&resourceVersion=5", 9, true),
            ("?watch=true&resourceVersion=5", 11, false),
            ("?watch=true&resourceVersion=5", 10_000, false),
            ("?limit=500", 11, true),
            ("/watch", 11, true),
        ] {
            let begin = Instant::now();
            assert_eq!(is_answered(query, seconds).await, expected, "{query} after {seconds} s");
            let took = if expected { Duration::from_secs(seconds) } else { WATCH_START };
            assert_eq!(begin.elapsed(), took, "{query} after {seconds} s");
        }
    }
}
