//! What has been done for jobs, as the API server has accepted it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use prometheus::{Histogram, IntCounter, Registry, Result};
use trainjob_api::{conditions::Reason, time::Timestamp};
use trainjob_core::{
    facts::{ObjectKey, Outcome},
    mark::Marking,
};
use trainjob_engine::error::FailureReason;
use trainjob_process::metrics::{counters, histogram};

use super::by_namespace::{About, Counters, Histograms, JobNamespaces, Maker};

/// Upper bounds of lateness in seconds: from what is aimed at (milliseconds) past what is promised (5
/// seconds for a deadline, 30 for a deletion) to what is a disaster (an hour).
const LATENESS: [f64; 17] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
    600.0, 3_600.0,
];
/// Upper bounds in seconds of what people wait for: from one to a week.
const LIFE: [f64; 12] = [
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0, 604_800.0,
];

const OUTCOMES: [Outcome; 3] = [Outcome::Complete, Outcome::Failed, Outcome::DeadlineExceeded];

/// How jobs end, by the reasons that JobSet and this operator give.
const ENDS: [(Outcome, &str); 8] = [
    (Outcome::Complete, "AllJobsCompleted"),
    (Outcome::Complete, OTHER_REASON),
    (Outcome::Failed, "FailedJobs"),
    (Outcome::Failed, "ReachedMaxRestarts"),
    (Outcome::Failed, "FailJobSetFailurePolicyAction"),
    (Outcome::Failed, Reason::TrainingRuntimeNotSupported.as_str()),
    (Outcome::Failed, OTHER_REASON),
    (Outcome::DeadlineExceeded, Reason::DeadlineExceeded.as_str()),
];
const OTHER_REASON: &str = "other";

/// Counters about jobs.
#[derive(Debug)]
pub struct Jobs {
    namespaces: Arc<JobNamespaces>,
    started: Counters<0, 1>,
    finished: Counters<2, { ENDS.len() }>,
    queued: Histograms<0, 1>,
    running: Histograms<1, { OUTCOMES.len() }>,
    deadlines: Deadlines,
    ttl: TtlDeletions,
    /// Marked, and skipped.
    accounting: [IntCounter; 2],
}

/// Deadlines that were enforced, and the releases that followed.
#[derive(Debug)]
struct Deadlines {
    exceeded: Counters<0, 1>,
    enforcement_latency: Histogram,
    release_latency: Histogram,
    release_failures: Counters<1, { FailureReason::ALL.len() }>,
}

/// Deletions that a TTL called for.
#[derive(Debug)]
struct TtlDeletions {
    deletions: Counters<1, { OUTCOMES.len() }>,
    latency: Histogram,
    failures: Counters<1, { FailureReason::ALL.len() }>,
}

impl Jobs {
    /// All at zero, of jobs in these namespaces.
    pub(super) fn new(registry: &Registry, namespaces: Arc<JobNamespaces>) -> Result<Self> {
        let make = Maker { registry, namespaces: &namespaces };
        Ok(Self {
            started: make.counters(About::plain(
                "trainjob_started_total",
                "Times a job was seen to begin running, after its creation or a resume.",
            ))?,
            finished: make.counters(finished())?,
            queued: make.histograms(
                About::plain(
                    "trainjob_queued_duration_seconds",
                    "From the creation of a job, or its last resume, to being seen to run.",
                ),
                &LIFE,
            )?,
            running: make.histograms(
                About::by(
                    "outcome",
                    OUTCOMES.map(label),
                    "trainjob_running_duration_seconds",
                    "From being seen to run to the end, by outcome, of jobs whose beginning \
                     this process has seen.",
                ),
                &LIFE,
            )?,
            deadlines: Deadlines::new(make)?,
            ttl: TtlDeletions::new(make)?,
            accounting: counters(
                registry,
                (
                    "trainjob_operator_accounting_jobs_total",
                    "JobSets that were created with a mark by which their Pods are counted, and \
                     those that were not because trainjob-accounting does not live.",
                ),
                "result",
                ["marked", "skipped"],
            )?,
            namespaces,
        })
    }

    /// The namespaces that are told apart.
    pub(super) const fn namespaces(&self) -> &Arc<JobNamespaces> {
        &self.namespaces
    }

    /// Begins all series of a namespace, as it is shown, at zero.
    pub(super) fn begin(&self, shown: &str) {
        self.started.begin(shown);
        self.finished.begin(shown);
        self.queued.begin(shown);
        self.running.begin(shown);
        self.deadlines.exceeded.begin(shown);
        self.deadlines.release_failures.begin(shown);
        self.ttl.deletions.begin(shown);
        self.ttl.failures.begin(shown);
    }

    /// A JobSet was created with the mark by which its Pods are counted, or without.
    pub fn marked(&self, marking: Marking) {
        let [marked, skipped] = &self.accounting;
        match marking {
            Marking::Marked => marked.inc(),
            Marking::Skipped => skipped.inc(),
            Marking::Off => {}
        }
    }

    /// A job that had to run since `since` has been seen to run at `now`.
    pub fn started(&self, job: &ObjectKey, since: Timestamp, now: SystemTime) {
        let shown = self.shown(job);
        self.started.of([], &shown).inc();
        self.queued.of([], &shown).observe(elapsed(since.into(), now));
    }

    /// The end of a job has been stored, with this reason; it has been seen to run for so long.
    pub fn finished(&self, job: &ObjectKey, outcome: Outcome, reason: &str, ran: Option<Duration>) {
        let (known, shown) = (ENDS.contains(&(outcome, reason)), self.shown(job));
        let reason = if known { reason } else { OTHER_REASON };
        if ENDS.contains(&(outcome, reason)) {
            self.finished.of([label(outcome), reason], &shown).inc();
        }
        if let Some(ran) = ran {
            self.running.of([label(outcome)], &shown).observe(ran.as_secs_f64());
        }
    }

    /// The condition of a deadline that was due at `due` has been stored at `now`.
    pub fn deadline_exceeded(&self, job: &ObjectKey, due: Timestamp, now: SystemTime) {
        self.deadlines.exceeded.of([], &self.shown(job)).inc();
        self.deadlines.enforcement_latency.observe(elapsed(due.into(), now));
    }

    /// The last Pod of a job that its deadline failed at `failed` has been seen gone at `now`.
    pub fn released(&self, failed: Timestamp, now: SystemTime) {
        self.deadlines.release_latency.observe(elapsed(failed.into(), now));
    }

    /// A request that serves the release of such a job has failed.
    pub fn release_failed(&self, job: &ObjectKey, failure: FailureReason) {
        self.deadlines.release_failures.of([failure.name()], &self.shown(job)).inc();
    }

    /// A TTL deletion that was possible from `due` on has been accepted at `now`.
    pub fn ttl_deleted(&self, job: &ObjectKey, outcome: Outcome, due: SystemTime, now: SystemTime) {
        self.ttl.deletions.of([label(outcome)], &self.shown(job)).inc();
        self.ttl.latency.observe(elapsed(due, now));
    }

    /// A TTL deletion has failed.
    pub fn ttl_deletion_failed(&self, job: &ObjectKey, failure: FailureReason) {
        self.ttl.failures.of([failure.name()], &self.shown(job)).inc();
    }

    fn shown(&self, job: &ObjectKey) -> Arc<str> {
        self.namespaces.shown(&job.namespace)
    }
}

impl Deadlines {
    fn new(make: Maker<'_>) -> Result<Self> {
        Ok(Self {
            exceeded: make.counters(About::plain(
                "trainjob_deadline_exceeded_total",
                "Jobs that were failed by their deadline.",
            ))?,
            enforcement_latency: histogram(
                make.registry,
                (
                    "trainjob_deadline_enforcement_latency_seconds",
                    "From the instant a deadline was due to the stored Failed condition.",
                ),
                &LATENESS,
            )?,
            release_latency: histogram(
                make.registry,
                (
                    "trainjob_release_latency_seconds",
                    "From the stored Failed condition of a deadline to the last Pod seen gone.",
                ),
                &LATENESS,
            )?,
            release_failures: make.counters(About::by(
                "reason",
                FailureReason::ALL.map(FailureReason::name),
                "trainjob_release_failures_total",
                "Failed requests to stop a job that its deadline failed, or to ask for its \
                     Pods, by reason.",
            ))?,
        })
    }
}

impl TtlDeletions {
    fn new(make: Maker<'_>) -> Result<Self> {
        Ok(Self {
            deletions: make.counters(About::by(
                "outcome",
                OUTCOMES.map(label),
                "trainjob_ttl_deletions_total",
                "TTL deletions that the API server accepted, by outcome of the job.",
            ))?,
            latency: histogram(
                make.registry,
                (
                    "trainjob_ttl_deletion_latency_seconds",
                    "From the instant a TTL deletion was due to its acceptance.",
                ),
                &LATENESS,
            )?,
            failures: make.counters(About::by(
                "reason",
                FailureReason::ALL.map(FailureReason::name),
                "trainjob_ttl_deletion_failures_total",
                "TTL deletions that failed and will be tried again, by reason.",
            ))?,
        })
    }
}

/// Only pairs that there can be have a series.
fn finished() -> About<'static, 2, { ENDS.len() }> {
    About {
        name: "trainjob_finished_total",
        help: "Jobs whose end was stored, by outcome and by reason of the condition.",
        labels: ["outcome", "reason"],
        series: ENDS.map(|(outcome, reason)| [label(outcome), reason]),
    }
}

pub(super) const fn label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "complete",
        Outcome::Failed => "failed",
        Outcome::DeadlineExceeded => "deadline_exceeded",
    }
}

/// Seconds from an instant to `now`; 0 if that seems to be earlier.
fn elapsed(since: SystemTime, now: SystemTime) -> f64 {
    now.duration_since(since).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> ObjectKey {
        ObjectKey::new("ns", "a")
    }

    fn lines(count: impl FnOnce(&Jobs)) -> Vec<String> {
        let registry = Registry::new();
        count(&Jobs::new(&registry, Arc::new(JobNamespaces::new(0))).unwrap());
        let page = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        page.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    fn says(lines: &[String], expected: &[&str]) {
        for line in expected {
            assert!(lines.iter().any(|it| it == line), "no {line} in\n{lines:#?}");
        }
    }

    #[test]
    fn every_series_is_there_from_the_start_and_jobs_add_none() {
        let now = SystemTime::now();
        let everything = |jobs: &Jobs| {
            for outcome in OUTCOMES {
                jobs.ttl_deleted(&job(), outcome, now, now);
                for reason in ["AllJobsCompleted", "DeadlineExceeded", "whatever JobSet says next"]
                {
                    jobs.finished(&job(), outcome, reason, Some(Duration::ZERO));
                }
            }
            for failure in FailureReason::ALL {
                jobs.ttl_deletion_failed(&job(), failure);
                jobs.release_failed(&job(), failure);
            }
            jobs.started(&job(), Timestamp(0), now);
            jobs.deadline_exceeded(&job(), Timestamp(0), now);
            jobs.released(Timestamp(i64::MAX), now);
        };
        assert_eq!(lines(everything).len(), lines(|_| ()).len());
    }

    #[test]
    fn what_was_accepted_is_counted_by_outcome_and_by_lateness() {
        let now = SystemTime::now();
        let late = now - Duration::from_secs(20);
        let counted = lines(|jobs| {
            jobs.ttl_deleted(&job(), Outcome::Failed, late, now);
            jobs.ttl_deleted(&job(), Outcome::Failed, late, now);
            jobs.deadline_exceeded(&job(), Timestamp(0), now);
        });
        says(
            &counted,
            &[
                "trainjob_ttl_deletions_total{outcome=\"complete\"} 0",
                "trainjob_ttl_deletions_total{outcome=\"failed\"} 2",
                "trainjob_ttl_deletion_latency_seconds_bucket{le=\"10\"} 0",
                "trainjob_ttl_deletion_latency_seconds_bucket{le=\"30\"} 2",
                "trainjob_deadline_exceeded_total 1",
                "trainjob_deadline_enforcement_latency_seconds_bucket{le=\"3600\"} 0",
                "trainjob_deadline_enforcement_latency_seconds_bucket{le=\"+Inf\"} 1",
                "trainjob_release_latency_seconds_count 0",
            ],
        );
    }

    #[test]
    fn an_end_is_counted_by_its_reason_and_one_that_nobody_knows_as_another() {
        let counted = lines(|jobs| {
            jobs.finished(
                &job(),
                Outcome::Complete,
                "AllJobsCompleted",
                Some(Duration::from_secs(30)),
            );
            jobs.finished(&job(), Outcome::Failed, "SomethingNew", None);
            jobs.finished(&job(), Outcome::Failed, "AllJobsCompleted", None);
        });
        says(
            &counted,
            &[
                r#"trainjob_finished_total{outcome="complete",reason="AllJobsCompleted"} 1"#,
                r#"trainjob_finished_total{outcome="failed",reason="other"} 2"#,
                r#"trainjob_running_duration_seconds_bucket{outcome="complete",le="15"} 0"#,
                r#"trainjob_running_duration_seconds_bucket{outcome="complete",le="60"} 1"#,
                r#"trainjob_running_duration_seconds_count{outcome="failed"} 0"#,
            ],
        );
    }

    #[test]
    fn what_failed_is_counted_by_reason() {
        let counted = lines(|jobs| {
            jobs.ttl_deletion_failed(&job(), FailureReason::Forbidden);
            jobs.release_failed(&job(), FailureReason::Unanswered);
        });
        says(
            &counted,
            &[
                r#"trainjob_ttl_deletion_failures_total{reason="forbidden"} 1"#,
                r#"trainjob_ttl_deletion_failures_total{reason="unanswered"} 0"#,
                r#"trainjob_release_failures_total{reason="unanswered"} 1"#,
            ],
        );
    }
}
