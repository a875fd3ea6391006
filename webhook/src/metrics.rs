//! What admission looks like in numbers (`docs/metrics.md`).
//!
//! Every series is there from the start, and none is added by what somebody sends.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use hyper::StatusCode;
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};
use trainjob_process::metrics::{Sampled, build_info, counters, own};

use crate::{
    kinds::{KINDS, NAMESPACE_KIND},
    namespaces::Namespaces,
    review::{Answer, Refusal},
    runtimes::Runtimes,
    task::Task,
};

/// What the names of all metrics of the admission server begin with.
pub const PREFIX: &str = "trainjob_webhook";

/// Upper bounds of how long an answer takes, in seconds: up to the ten that the API server waits.
const LATENCY: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 4.0, 10.0,
];

const OPERATIONS: [&str; 3] = ["CREATE", "UPDATE", "OTHER"];
/// Where the last of them is.
const OTHER: usize = 2;

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Allowed,
    /// No.
    Denied,
    /// Neither: the object could not be read.
    Unreadable,
    /// Neither: what the verdict depends on could not be read.
    Unavailable,
}

impl Verdict {
    const ALL: [Self; 4] = [Self::Allowed, Self::Denied, Self::Unreadable, Self::Unavailable];

    /// The verdict of an answer.
    #[must_use]
    pub const fn of(answer: &Answer) -> Self {
        match &answer.refusal {
            None => Self::Allowed,
            Some(Refusal::Denied(_)) => Self::Denied,
            Some(Refusal::Unreadable(_)) => Self::Unreadable,
            Some(Refusal::Unavailable(_)) => Self::Unavailable,
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Unreadable => "unreadable",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Why a request was not even a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// Its body is too long.
    TooLong,
    /// There is no room for its body.
    NoRoom,
    /// Its body came too slowly.
    TooSlow,
    /// Its body ended before its end.
    BrokenOff,
    /// Its body is not an `AdmissionReview`.
    Malformed,
}

impl Rejection {
    const ALL: [Self; 5] =
        [Self::TooLong, Self::NoRoom, Self::TooSlow, Self::BrokenOff, Self::Malformed];

    const fn label(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::NoRoom => "no_room",
            Self::TooSlow => "too_slow",
            Self::BrokenOff => "broken_off",
            Self::Malformed => "malformed",
        }
    }

    /// The status of the answer.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BrokenOff | Self::Malformed => StatusCode::BAD_REQUEST,
        }
    }

    /// What to tell whoever sent it.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::TooLong => "the body is too long, expected at most 6 MiB",
            Self::NoRoom => "there are too many bodies at this moment, try again",
            Self::TooSlow => "the body was not complete within 10 seconds",
            Self::BrokenOff => "the body broke off",
            Self::Malformed => "the body is not an AdmissionReview",
        }
    }
}

/// The metrics of one admission server, in a registry of their own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// In the order of [`Task::ALL`].
    answers: [Answers; Task::ALL.len()],
    rejected: IntCounterVec,
    certificate_expiry: Gauge,
    /// The same by its name of 0.1, for one more release.
    certificate_expiry_by_old_name: Gauge,
    reloads: IntCounterVec,
    restarts: [IntCounter; KINDS.len()],
}

/// What counts the answers of one task.
#[derive(Debug)]
struct Answers {
    /// By operation and verdict.
    requests: [[IntCounter; Verdict::ALL.len()]; OPERATIONS.len()],
    latency: Histogram,
}

impl Answers {
    fn of(task: Task, requests: &IntCounterVec, latency: &HistogramVec) -> Self {
        let kind = task.kind();
        let of = |operation, verdict: Verdict| {
            requests.with_label_values(&[operation, kind, verdict.label()])
        };
        Self {
            requests: OPERATIONS
                .map(|operation| Verdict::ALL.map(|verdict| of(operation, verdict))),
            latency: latency.with_label_values(&[kind]),
        }
    }
}

impl Metrics {
    /// All of them, at zero.
    ///
    /// # Errors
    ///
    /// If two of them have one name, or one has none: never, as the tests see.
    pub fn new() -> Result<Arc<Self>, prometheus::Error> {
        let registry = Registry::new();
        build_info(&registry, PREFIX)?;
        own(&registry)?;
        let requests = IntCounterVec::new(
            Opts::new(
                "trainjob_webhook_requests_total",
                "Admission requests that were answered, by operation, kind and verdict.",
            ),
            &["operation", "kind", "verdict"],
        )?;
        let latency = HistogramVec::new(
            HistogramOpts::new(
                "trainjob_webhook_request_duration_seconds",
                "From the last byte of an admission request to its answer, by kind.",
            )
            .buckets(LATENCY.to_vec()),
            &["kind"],
        )?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(latency.clone()))?;
        let metrics = Self {
            restarts: counters(
                &registry,
                (
                    "trainjob_webhook_watch_restarts_total",
                    "Watches that failed and were begun anew, by kind.",
                ),
                "kind",
                KINDS,
            )?,
            registry,
            answers: Task::ALL.map(|task| Answers::of(task, &requests, &latency)),
            rejected: IntCounterVec::new(
                Opts::new(
                    "trainjob_webhook_rejected_bodies_total",
                    "Requests whose body was no admission request, by reason.",
                ),
                &["reason"],
            )?,
            certificate_expiry: Gauge::new(
                "trainjob_webhook_certificate_expiry_timestamp_seconds",
                "When the serving certificate expires, in seconds since 1970; 0 without one.",
            )?,
            certificate_expiry_by_old_name: Gauge::new(
                "trainjob_webhook_certificate_expiry_time_seconds",
                "Deprecated: trainjob_webhook_certificate_expiry_timestamp_seconds.",
            )?,
            reloads: IntCounterVec::new(
                Opts::new(
                    "trainjob_webhook_certificate_reloads_total",
                    "Serving certificates that were taken into use, or refused.",
                ),
                &["result"],
            )?,
        };
        metrics.begin_at_zero();
        metrics.registry.register(Box::new(metrics.rejected.clone()))?;
        for expiry in [&metrics.certificate_expiry, &metrics.certificate_expiry_by_old_name] {
            metrics.registry.register(Box::new(expiry.clone()))?;
        }
        metrics.registry.register(Box::new(metrics.reloads.clone()))?;
        Ok(Arc::new(metrics))
    }

    /// Makes every series there is.
    fn begin_at_zero(&self) {
        for rejection in Rejection::ALL {
            self.rejected.with_label_values(&[rejection.label()]);
        }
        for result in [LOADED, REFUSED] {
            self.reloads.with_label_values(&[result]);
        }
    }

    /// Shows how many runtimes and namespaces are known.
    ///
    /// # Errors
    ///
    /// They are shown already.
    pub fn show(
        &self,
        runtimes: Arc<Runtimes>,
        namespaces: Arc<Namespaces>,
    ) -> Result<(), prometheus::Error> {
        let mut metrics = Sampled::default();
        let cached = metrics.gauges(
            ("trainjob_webhook_cached_objects", "Objects in the cache, by kind."),
            "kind",
            KINDS,
        )?;
        metrics.register(&self.registry, move || {
            for (cached, kind) in cached.iter().zip(KINDS) {
                let count = match kind {
                    NAMESPACE_KIND => namespaces.count(),
                    kind => runtimes.count(kind),
                };
                cached.set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        })
    }

    /// What counts the failures of the watch of this kind, by the place of the kind in [`KINDS`].
    #[must_use]
    pub const fn restarts(&self) -> &[IntCounter; KINDS.len()] {
        &self.restarts
    }

    /// What they are to be read from.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// A request has been answered, which took so long.
    pub fn answered(&self, task: Task, operation: &str, verdict: Verdict, took: Duration) {
        let operation = OPERATIONS.iter().position(|known| *known == operation).unwrap_or(OTHER);
        // All of them are there.
        if let Some(answers) = self.answers.get(task as usize)
            && let Some(verdicts) = answers.requests.get(operation)
            && let Some(counter) = verdicts.get(verdict as usize)
        {
            counter.inc();
            answers.latency.observe(took.as_secs_f64());
        }
    }

    /// A request was rejected.
    pub fn rejected(&self, rejection: Rejection) {
        self.rejected.with_label_values(&[rejection.label()]).inc();
    }

    /// A serving certificate is in use from now on, which expires at `expiry`.
    pub fn certificate_loaded(&self, expiry: SystemTime) {
        let seconds = expiry.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for gauge in [&self.certificate_expiry, &self.certificate_expiry_by_old_name] {
            gauge.set(seconds.as_secs_f64());
        }
        self.reloads.with_label_values(&[LOADED]).inc();
    }

    /// A new serving certificate is of no use; the old one, if there is one, stays.
    pub fn certificate_refused(&self) {
        self.reloads.with_label_values(&[REFUSED]).inc();
    }
}

const LOADED: &str = "loaded";
const REFUSED: &str = "refused";

#[cfg(test)]
mod tests {
    use super::*;

    fn page(metrics: &Metrics) -> String {
        prometheus::TextEncoder::new().encode_to_string(&metrics.registry().gather()).unwrap()
    }

    #[test]
    fn every_series_is_there_from_the_start_and_requests_add_none() {
        let metrics = Metrics::new().unwrap();
        let series = |page: &str| page.lines().filter(|line| !line.starts_with('#')).count();
        let before = series(&page(&metrics));
        for operation in ["CREATE", "UPDATE", "DELETE", "anything"] {
            metrics.answered(Task::ValidateTrainJob, operation, Verdict::Denied, Duration::ZERO);
        }
        for rejection in Rejection::ALL {
            metrics.rejected(rejection);
        }
        metrics.certificate_loaded(SystemTime::now());
        metrics.certificate_refused();
        assert_eq!(series(&page(&metrics)), before);
    }

    #[test]
    fn what_was_answered_is_counted() {
        let metrics = Metrics::new().unwrap();
        let took = Duration::from_millis(2);
        metrics.answered(Task::ValidateTrainJob, "CREATE", Verdict::Denied, took);
        metrics.answered(Task::DefaultTrainJob, "CREATE", Verdict::Allowed, took);
        metrics.answered(Task::DefaultTrainJob, "CONNECT", Verdict::Allowed, took);
        metrics.rejected(Rejection::TooLong);
        metrics.certificate_loaded(SystemTime::UNIX_EPOCH + Duration::from_secs(7));
        metrics.certificate_refused();
        let page = page(&metrics);
        for line in [
            r#"trainjob_webhook_requests_total{kind="TrainJob",operation="CREATE",verdict="denied"} 1"#,
            r#"trainjob_webhook_requests_total{kind="TrainJob",operation="CREATE",verdict="allowed"} 1"#,
            r#"trainjob_webhook_requests_total{kind="TrainJob",operation="OTHER",verdict="allowed"} 1"#,
            r#"trainjob_webhook_request_duration_seconds_bucket{kind="TrainJob",le="0.001"} 0"#,
            r#"trainjob_webhook_request_duration_seconds_bucket{kind="TrainJob",le="0.0025"} 3"#,
            r#"trainjob_webhook_rejected_bodies_total{reason="too_long"} 1"#,
            "trainjob_webhook_certificate_expiry_timestamp_seconds 7",
            "trainjob_webhook_certificate_expiry_time_seconds 7",
            r#"trainjob_webhook_certificate_reloads_total{result="loaded"} 1"#,
            r#"trainjob_webhook_certificate_reloads_total{result="refused"} 1"#,
        ] {
            assert!(page.lines().any(|it| it == line), "no {line} in\n{page}");
        }
    }
}
