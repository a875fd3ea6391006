//! What the end of jobs' lives looks like in numbers (`docs/semantics.md` §7; names from KEP-2899).
//!
//! Only what the API server has accepted is counted, by the process that asked for it. Every series is
//! there from the start, and none is added by a job: a hundred thousand of them leave `/metrics` as long
//! as it was.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};
use trainjob_api::time::Timestamp;
use trainjob_core::facts::Outcome;

/// Upper bounds of lateness in seconds: from what is aimed at (milliseconds) past what is promised (30
/// seconds) to what is a disaster (an hour).
const LATENESS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0,
    3_600.0,
];

/// The metrics of one operator, in a registry of their own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    ttl_deletions: IntCounterVec,
    ttl_deletion_latency: Histogram,
    deadlines_exceeded: IntCounter,
    deadline_enforcement_latency: Histogram,
    release_latency: Histogram,
}

impl Metrics {
    /// All of them, at zero.
    ///
    /// # Errors
    ///
    /// If two of them have one name, or one has none: never, as the tests see.
    pub fn new() -> Result<Arc<Self>, prometheus::Error> {
        let metrics = Self {
            registry: Registry::new(),
            ttl_deletions: IntCounterVec::new(
                Opts::new(
                    "trainjob_ttl_deletions_total",
                    "TTL deletions that the API server accepted, by outcome of the job.",
                ),
                &["outcome"],
            )?,
            ttl_deletion_latency: lateness(
                "trainjob_ttl_deletion_latency_seconds",
                "From the instant a TTL deletion was due to its acceptance.",
            )?,
            deadlines_exceeded: IntCounter::new(
                "trainjob_deadline_exceeded_total",
                "Jobs that were failed by their deadline.",
            )?,
            deadline_enforcement_latency: lateness(
                "trainjob_deadline_enforcement_latency_seconds",
                "From the instant a deadline was due to the stored Failed condition.",
            )?,
            release_latency: lateness(
                "trainjob_release_latency_seconds",
                "From the stored Failed condition of a deadline to the last Pod seen gone.",
            )?,
        };
        for outcome in [Outcome::Complete, Outcome::Failed, Outcome::DeadlineExceeded] {
            metrics.ttl_deletions.with_label_values(&[label(outcome)]);
        }
        metrics.registry.register(Box::new(metrics.ttl_deletions.clone()))?;
        metrics.registry.register(Box::new(metrics.ttl_deletion_latency.clone()))?;
        metrics.registry.register(Box::new(metrics.deadlines_exceeded.clone()))?;
        metrics.registry.register(Box::new(metrics.deadline_enforcement_latency.clone()))?;
        metrics.registry.register(Box::new(metrics.release_latency.clone()))?;
        Ok(Arc::new(metrics))
    }

    /// What they are to be read from.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// A TTL deletion that was possible from `due` on has been accepted.
    pub fn ttl_deleted(&self, outcome: Outcome, due: SystemTime) {
        self.ttl_deletions.with_label_values(&[label(outcome)]).inc();
        self.ttl_deletion_latency.observe(since(due).as_secs_f64());
    }

    /// The condition of a deadline that was due at `due` has been stored.
    pub fn deadline_exceeded(&self, due: Timestamp) {
        self.deadlines_exceeded.inc();
        self.deadline_enforcement_latency.observe(since(due.into()).as_secs_f64());
    }

    /// The last Pod of a job that its deadline failed at `failed` has been seen gone.
    pub fn released(&self, failed: Timestamp) {
        self.release_latency.observe(since(failed.into()).as_secs_f64());
    }
}

fn lateness(name: &str, help: &str) -> Result<Histogram, prometheus::Error> {
    Histogram::with_opts(HistogramOpts::new(name, help).buckets(LATENESS.to_vec()))
}

const fn label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "complete",
        Outcome::Failed => "failed",
        Outcome::DeadlineExceeded => "deadline_exceeded",
    }
}

fn since(instant: SystemTime) -> Duration {
    // The clock may have been set back meanwhile.
    SystemTime::now().duration_since(instant).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(metrics: &Metrics) -> String {
        prometheus::TextEncoder::new().encode_to_string(&metrics.registry().gather()).unwrap()
    }

    #[test]
    fn every_series_is_there_from_the_start_and_jobs_add_none() {
        let metrics = Metrics::new().unwrap();
        let series = |page: &str| page.lines().filter(|line| !line.starts_with('#')).count();
        let before = series(&page(&metrics));
        for outcome in [Outcome::Complete, Outcome::Failed, Outcome::DeadlineExceeded] {
            metrics.ttl_deleted(outcome, SystemTime::now());
        }
        metrics.deadline_exceeded(Timestamp(0));
        metrics.released(Timestamp(i64::MAX));
        assert_eq!(series(&page(&metrics)), before);
    }

    #[test]
    fn what_was_accepted_is_counted_by_outcome_and_by_lateness() {
        let metrics = Metrics::new().unwrap();
        let late = SystemTime::now() - Duration::from_secs(20);
        metrics.ttl_deleted(Outcome::Failed, late);
        metrics.ttl_deleted(Outcome::Failed, late);
        metrics.deadline_exceeded(Timestamp(0));
        let page = page(&metrics);
        for line in [
            "trainjob_ttl_deletions_total{outcome=\"complete\"} 0",
            "trainjob_ttl_deletions_total{outcome=\"failed\"} 2",
            "trainjob_ttl_deletion_latency_seconds_bucket{le=\"10\"} 0",
            "trainjob_ttl_deletion_latency_seconds_bucket{le=\"30\"} 2",
            "trainjob_deadline_exceeded_total 1",
            "trainjob_deadline_enforcement_latency_seconds_bucket{le=\"3600\"} 0",
            "trainjob_deadline_enforcement_latency_seconds_bucket{le=\"+Inf\"} 1",
            "trainjob_release_latency_seconds_count 0",
        ] {
            assert!(page.lines().any(|it| it == line), "no {line} in\n{page}");
        }
    }
}
