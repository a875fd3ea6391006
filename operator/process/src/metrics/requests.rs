//! Requests to the API server: how many, how long, and what came of them.
//!
//! A layer around a client counts what passes, by what can be told from the request alone. What is counted
//! under is looked up once for each combination that occurs; there are as many as the program sends
//! different requests, however many jobs there are.

mod target;

use std::{
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Instant,
};

use futures::future::BoxFuture;
use http::{Request, Response};
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, Result,
};
use tower::{Layer, Service};

pub use self::target::Kinds;
pub(crate) use self::target::is_watch;
use self::target::{KindNumber, Verb};

/// Upper bounds of how long a request takes, in seconds: up to its time limit.
const DURATION: [f64; 14] =
    [0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0];

/// The status codes that are told apart.
const CODES: [(u16, &str); 16] = [
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (409, "409"),
    (410, "410"),
    (413, "413"),
    (422, "422"),
    (429, "429"),
    (500, "500"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
];
/// What a request is counted under that got no answer, or another one.
const NO_ANSWER: (usize, &str) = (CODES.len(), "none");
const OTHER_CODE: (usize, &str) = (CODES.len() + 1, "other");
const ALL_CODES: usize = CODES.len() + 2;

/// What counts requests.
#[derive(Debug)]
pub struct Requests {
    kinds: Kinds,
    total: IntCounterVec,
    duration: HistogramVec,
    /// By verb, kind and code.
    counters: Vec<OnceLock<IntCounter>>,
    /// By verb and kind.
    durations: Vec<OnceLock<Histogram>>,
}

impl Requests {
    /// Of a program that sends requests about these kinds, and whose metrics begin with `prefix`.
    ///
    /// # Errors
    ///
    /// The prefix is none.
    pub fn new(prefix: &str, kinds: Kinds) -> Result<Arc<Self>> {
        let total = Opts::new(
            format!("{prefix}_api_requests_total"),
            "Requests to the API server, by verb, kind and status of the answer.",
        );
        let duration = HistogramOpts::new(
            format!("{prefix}_api_request_duration_seconds"),
            "From sending a request to the API server to the head of its answer, by verb and kind.",
        );
        let kinds_and_other = kinds.len() + 1;
        let cells = Verb::ALL.len() * kinds_and_other;
        Ok(Arc::new(Self {
            kinds,
            total: IntCounterVec::new(total, &["verb", "kind", "code"])?,
            duration: HistogramVec::new(duration.buckets(DURATION.to_vec()), &["verb", "kind"])?,
            counters: (0..cells * ALL_CODES).map(|_| OnceLock::new()).collect(),
            durations: (0..cells).map(|_| OnceLock::new()).collect(),
        }))
    }

    /// Shows them.
    ///
    /// # Errors
    ///
    /// There is a metric of one of their names.
    pub fn register(&self, registry: &Registry) -> Result<()> {
        registry.register(Box::new(self.total.clone()))?;
        registry.register(Box::new(self.duration.clone()))
    }

    /// Counts a request about something with this outcome: the status of its answer, if it got one.
    fn count(&self, (verb, kind): (Verb, KindNumber), code: Option<u16>, seconds: f64) {
        let cell = verb as usize * (self.kinds.len() + 1) + kind.0;
        let names = || (verb.name(), kind.name(self.kinds));
        let (number, code) = match code {
            None => NO_ANSWER,
            Some(code) => numbered(code),
        };
        if let Some(counter) = self.counters.get(cell * ALL_CODES + number) {
            let new = || {
                let (verb, kind) = names();
                self.total.with_label_values(&[verb, kind, code])
            };
            counter.get_or_init(new).inc();
        }
        if let Some(duration) = self.durations.get(cell) {
            let new = || {
                let (verb, kind) = names();
                self.duration.with_label_values(&[verb, kind])
            };
            duration.get_or_init(new).observe(seconds);
        }
    }
}

fn numbered(code: u16) -> (usize, &'static str) {
    let known = CODES.iter().enumerate().find(|(_, (known, _))| *known == code);
    known.map_or(OTHER_CODE, |(number, (_, name))| (number, *name))
}

/// A client that counts its requests.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    inner: S,
    requests: Arc<Requests>,
}

/// Makes a client count its requests.
#[derive(Debug, Clone)]
pub struct Counting(pub Arc<Requests>);

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, requests: Arc::clone(&self.0) }
    }
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, std::result::Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<std::result::Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let target = target::of(self.requests.kinds, request.method(), request.uri());
        let under_way = UnderWay {
            requests: Arc::clone(&self.requests),
            target,
            begun: Instant::now(),
            code: None,
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            // As a whole: it is counted when it is dropped.
            let mut under_way = under_way;
            let answer = answer.await;
            if let Ok(answer) = &answer {
                under_way.code = Some(answer.status().as_u16());
            }
            answer
        })
    }
}

/// A request that is counted when it is over, also when nobody waits for its answer any more.
struct UnderWay {
    requests: Arc<Requests>,
    target: (Verb, KindNumber),
    begun: Instant,
    code: Option<u16>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let (verb, kind) = (self.target.0.name(), self.target.1.name(self.requests.kinds));
        let (code, seconds) = (self.code, self.begun.elapsed().as_secs_f64());
        tracing::debug!(verb, kind, code, seconds, "asked the API server");
        self.requests.count(self.target, code, seconds);
    }
}

#[cfg(test)]
mod tests;
