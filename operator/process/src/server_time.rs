//! The API server's time, as the answers to this process show it.
//!
//! A [layer](Dating) around a client notes the `Date` of every answer, with the instants between which it was made,
//! in the one [`ServerTime`] of the process. What they say together is worked out by
//! [`trainjob_core::server_time`].

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header::DATE};
use rustix::time::{ClockId, clock_gettime};
use tower::{Layer, Service};
use trainjob_api::time::Timestamp;
use trainjob_core::server_time::{Estimator, Planner, Precision, Reading, Sample};

/// The estimate of the API server's time that all parts of a process share.
#[derive(Debug)]
pub struct ServerTime(Mutex<Estimator>);

impl ServerTime {
    /// One that knows nothing yet. When the API server's clock jumps, what acts by time pauses for `pause`.
    #[must_use]
    pub fn new(pause: Duration) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Estimator::new(pause))))
    }

    /// Takes in an answer of the API server. A jump is logged.
    pub fn record(&self, sample: &Sample) {
        let mut estimator = self.lock();
        log_jumps(&mut estimator, |estimator| estimator.observe(sample));
    }

    /// What is known now; `None` before the first answer.
    #[must_use]
    pub fn reading(&self) -> Option<Reading> {
        let mut estimator = self.lock();
        // Read under the lock: no answer that is taken in already came later.
        log_jumps(&mut estimator, |estimator| estimator.reading(boot_time()))
    }

    /// How often the estimate has jumped.
    #[must_use]
    pub fn jumps(&self) -> u64 {
        self.lock().jumps()
    }

    /// When to ask for the time: see [`Planner::next`].
    #[must_use]
    pub fn next_request(&self, planner: &mut Planner, precision: Precision) -> Duration {
        planner.next(&self.lock(), boot_time(), precision)
    }

    /// Tells the planner what became of its request: see [`Planner::asked`].
    pub fn asked(&self, planner: &mut Planner, took: Option<Duration>) {
        planner.asked(took, &self.lock(), boot_time());
    }

    fn lock(&self) -> MutexGuard<'_, Estimator> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_jumps<T>(estimator: &mut Estimator, step: impl FnOnce(&mut Estimator) -> T) -> T {
    let before = estimator.jumps();
    let outcome = step(estimator);
    if let Some(jump) = estimator.last_jump().filter(|_| estimator.jumps() != before) {
        tracing::warn!(
            seconds = jump.seconds,
            "the API server's clock has jumped; what acts by time pauses (clockJumpPauseSeconds)"
        );
    }
    outcome
}

/// The time since this machine was started, which nobody sets, and which goes on while the machine sleeps.
#[must_use]
pub fn boot_time() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

/// Makes a client note the time of every answer.
#[derive(Debug, Clone)]
pub struct Dating(pub Arc<ServerTime>);

/// A client that notes the time of every answer.
#[derive(Debug, Clone)]
pub struct Dated<S> {
    inner: S,
    server_time: Arc<ServerTime>,
}

impl<S> Layer<S> for Dating {
    type Service = Dated<S>;

    fn layer(&self, inner: S) -> Dated<S> {
        Dated { inner, server_time: Arc::clone(&self.0) }
    }
}

impl<S, A, B> Service<Request<A>> for Dated<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let sent = boot_time();
        let answer = self.inner.call(request);
        let server_time = Arc::clone(&self.server_time);
        Box::pin(async move {
            let answer = answer.await?;
            let received = boot_time();
            if let Some(date) = date(answer.headers()) {
                server_time.record(&Sample { sent, received, date });
            }
            Ok(answer)
        })
    }
}

fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(DATE)?.to_str().ok()?;
    httpdate::parse_http_date(date).ok().map(|date: SystemTime| date.into())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tower::service_fn;

    use super::*;

    const PAUSE: Duration = Duration::from_mins(10);

    #[tokio::test]
    async fn date_of_an_answer_is_noted_and_an_answer_without_one_says_nothing() {
        let server_time = ServerTime::new(PAUSE);
        for (date, expected) in [
            (None, None),
            (Some("yesterday"), None),
            (Some("Thu, 01 Jan 2026 12:00:00 GMT"), Some(1_767_268_800)),
        ] {
            let inner = service_fn(move |_: Request<()>| async move {
                let headers = date.map(|date| (DATE, HeaderValue::from_static(date)));
                let mut answer = Response::new(());
                answer.headers_mut().extend(headers);
                Ok::<_, std::convert::Infallible>(answer)
            });
            let mut client = Dating(Arc::clone(&server_time)).layer(inner);
            client.call(Request::new(())).await.unwrap();
            let reading = server_time.reading();
            let earliest = reading.and_then(|reading| reading.now().reached());
            assert_eq!(earliest.is_some(), expected.is_some(), "{date:?}");
            if let (Some(reading), Some(expected)) = (reading, expected) {
                let noon = expected * 1_000_000;
                assert!(reading.clock.low <= noon + 1_000_000 && noon <= reading.clock.high);
            }
        }
    }

    #[test]
    fn boot_time_goes_on() {
        let (one, other) = (boot_time(), boot_time());
        assert!(!one.is_zero() && one <= other, "{one:?} {other:?}");
    }
}
