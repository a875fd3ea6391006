//! What the operator is busy with.

use std::time::Duration;

use prometheus::{Histogram, IntCounter, IntCounterVec, IntGauge, Opts, Registry, Result};
use trainjob_core::priority::Priority;
use trainjob_engine::{controller::Passed, lease};
use trainjob_process::metrics::{counter, counters, histograms};

use crate::kinds::Kind;

/// Upper bounds of passes and waits, in seconds.
const DURATION: [f64; 17] = [
    0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0,
];

/// What passes are counted by.
const RESULTS: [&str; 6] = ["settled", "failed", "postponed", "parked", "gone", "broken_off"];

/// Metrics about passes, watches and events.
#[derive(Debug)]
pub struct Work {
    passes: [IntCounter; RESULTS.len()],
    duration: [Histogram; Priority::ALL.len()],
    under_way: IntGauge,
    concurrency: IntGauge,
    waits: [Histogram; Priority::ALL.len()],
    restarts: [IntCounter; Kind::ALL.len()],
    lease_restarts: IntCounter,
    /// Events that were not sent.
    pub events_dropped: IntCounter,
    /// Manifests that were read again.
    pub manifests_read: IntCounter,
    /// Runtimes that were read again.
    pub runtimes_read: IntCounter,
}

impl Work {
    pub(super) fn new(registry: &Registry) -> Result<Self> {
        let priorities = Priority::ALL.map(priority_name);
        let gauge = |name, help| -> Result<IntGauge> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let restarts = restarts(registry)?;
        Ok(Self {
            passes: counters(
                registry,
                ("trainjob_operator_reconciles_total", "Passes over one job, by how they ended."),
                "result",
                RESULTS,
            )?,
            duration: histograms(
                registry,
                (
                    "trainjob_operator_reconcile_duration_seconds",
                    "How long a pass over one job takes, its requests included, by lane.",
                ),
                &DURATION,
                "lane",
                priorities,
            )?,
            under_way: gauge("trainjob_operator_reconciles_in_progress", "Passes under way.")?,
            concurrency: gauge(
                "trainjob_operator_reconcile_concurrency",
                "How many passes may be under way at the same time.",
            )?,
            waits: histograms(
                registry,
                (
                    "trainjob_operator_queue_wait_seconds",
                    "For how long jobs waited to be worked on, by lane.",
                ),
                &DURATION,
                "lane",
                priorities,
            )?,
            restarts: Kind::ALL.map(|kind| restarts.with_label_values(&[kind.name()])),
            lease_restarts: restarts.with_label_values(&[lease::KIND]),
            events_dropped: counter(
                registry,
                "trainjob_operator_events_dropped_total",
                "Events that were not sent because there were too many, or that an overloaded API server did not take.",
            )?,
            manifests_read: counter(
                registry,
                "trainjob_operator_manifests_read_total",
                "TrainJobs that were read because their manifest had made room for others.",
            )?,
            runtimes_read: counter(
                registry,
                "trainjob_operator_runtimes_read_total",
                "Runtimes that were read because they had made room for others.",
            )?,
        })
    }

    /// So many passes may be under way at the same time.
    pub fn set_concurrency(&self, passes: usize) {
        self.concurrency.set(i64::try_from(passes).unwrap_or(i64::MAX));
    }

    /// A pass begins, for which the job has waited so long.
    pub fn begun(&self, priority: Priority, waited: Duration) {
        self.under_way.inc();
        of_priority(&self.waits, priority).for_each(|waits| waits.observe(waited.as_secs_f64()));
    }

    /// A pass that began has ended so, after so long.
    pub fn ended(&self, priority: Priority, passed: Passed, took: Duration) {
        self.under_way.dec();
        let result = result(passed);
        for (passes, _) in self.passes.iter().zip(RESULTS).filter(|(_, it)| *it == result) {
            passes.inc();
        }
        of_priority(&self.duration, priority)
            .for_each(|duration| duration.observe(took.as_secs_f64()));
    }

    /// What counts the failures of the watch of this kind; of the Lease, if it is none of the others.
    #[must_use]
    pub fn restarts(&self, kind: &str) -> &IntCounter {
        let known = self.restarts.iter().zip(Kind::ALL).find(|(_, it)| it.name() == kind);
        known.map_or(&self.lease_restarts, |(counter, _)| counter)
    }
}

const fn result(passed: Passed) -> &'static str {
    match passed {
        Passed::Settled => "settled",
        Passed::Failed => "failed",
        Passed::Postponed => "postponed",
        Passed::WaitsFor(_) => "parked",
        Passed::Gone => "gone",
        Passed::BrokenOff => "broken_off",
    }
}

fn restarts(registry: &Registry) -> Result<IntCounterVec> {
    let opts = Opts::new(
        "trainjob_operator_watch_restarts_total",
        "Watches that failed and were begun anew, by kind.",
    );
    let restarts = IntCounterVec::new(opts, &["kind"])?;
    registry.register(Box::new(restarts.clone()))?;
    Ok(restarts)
}

/// The one of these that is about this priority.
fn of_priority<T>(
    by_priority: &[T; Priority::ALL.len()],
    priority: Priority,
) -> impl Iterator<Item = &T> {
    by_priority
        .iter()
        .zip(Priority::ALL)
        .filter(move |(_, it)| *it == priority)
        .map(|(metric, _)| metric)
}

pub(super) const fn priority_name(priority: Priority) -> &'static str {
    match priority {
        Priority::Stop => "stop",
        Priority::Live => "live",
        Priority::Cleanup => "cleanup",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_counted_by_end_and_lane_while_they_last_and_after() {
        let registry = Registry::new();
        let work = Work::new(&registry).unwrap();
        let page = || prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let has = |line: &str| page().lines().any(|it| it == line);
        work.begun(Priority::Stop, Duration::from_secs(2));
        assert!(has("trainjob_operator_reconciles_in_progress 1"));
        assert!(has(r#"trainjob_operator_queue_wait_seconds_bucket{lane="stop",le="1"} 0"#));
        assert!(has(r#"trainjob_operator_queue_wait_seconds_bucket{lane="stop",le="2.5"} 1"#));
        work.ended(Priority::Stop, Passed::Failed, Duration::from_millis(3));
        assert!(has("trainjob_operator_reconciles_in_progress 0"));
        assert!(has(r#"trainjob_operator_reconciles_total{result="failed"} 1"#));
        assert!(has(r#"trainjob_operator_reconcile_duration_seconds_count{lane="stop"} 1"#));
        assert!(has(r#"trainjob_operator_reconcile_duration_seconds_count{lane="live"} 0"#));
    }

    #[test]
    fn failures_of_a_watch_are_counted_by_its_kind() {
        let registry = Registry::new();
        let work = Work::new(&registry).unwrap();
        for kind in Kind::ALL.map(Kind::name).into_iter().chain([lease::KIND]) {
            work.restarts(kind).inc();
            assert_eq!(work.restarts(kind).get(), 1, "{kind}");
        }
    }
}
