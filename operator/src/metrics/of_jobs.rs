//! Gauges about jobs, as one look at all of them says.

use std::sync::Arc;

use prometheus::{IntGauge, IntGaugeVec, Opts, Result};
use trainjob_core::{
    facts::ObjectKey,
    job_stats::{Counts, Horizon, JobStats, Late, State},
};
use trainjob_process::metrics::{JOB_NAMESPACE, Sampled};

use super::{
    by_namespace::{About, Gauges, JobNamespaces, gauges, set},
    jobs::{Jobs, label},
};

/// Names and help: how many jobs are late, and how late the latest is.
type Lateness = [(&'static str, &'static str); 2];

const OVERDUE_DEADLINES: Lateness = [
    ("trainjob_overdue_deadlines", "Unfinished jobs whose deadline is due; about 0 in health."),
    (
        "trainjob_overdue_deadlines_longest_seconds",
        "For how long the longest overdue deadline has been due; 0 if there is none.",
    ),
];
const UNRELEASED: Lateness = [
    ("trainjob_unreleased", "Jobs failed by their deadline that are not yet released."),
    (
        "trainjob_unreleased_longest_seconds",
        "For how long the longest unreleased job has been failed; 0 if there is none.",
    ),
];
const OVERDUE_DELETIONS: Lateness = [
    (
        "trainjob_ttl_overdue_deletions",
        "Finished jobs whose TTL is due and that are not being deleted; about 0 in health.",
    ),
    (
        "trainjob_ttl_overdue_longest_seconds",
        "For how long the longest overdue TTL deletion has been due; 0 if there is none.",
    ),
];

/// About jobs.
pub(super) struct JobGauges {
    namespaces: Arc<JobNamespaces>,
    states: Gauges<1, { State::ALL.len() }>,
    overdue_deadlines: LateGauges,
    horizons: Gauges<1, { Horizon::ALL.len() }>,
    nearest: IntGaugeVec,
    unreleased: LateGauges,
    oldest_unreleased: IntGaugeVec,
    blocked: Gauges<0, 1>,
    pending: Gauges<0, 1>,
    overdue: LateGauges,
    terminating: Gauges<0, 1>,
    /// Names whose jobs a TTL deletes again and again.
    pub(super) loops: IntGauge,
}

impl JobGauges {
    pub(super) fn new(metrics: &mut Sampled, namespaces: &Arc<JobNamespaces>) -> Result<Self> {
        let of = &**namespaces;
        let plain = |metrics: &mut Sampled, name: &str, help: &str| {
            gauges(metrics, of, About::plain(name, help))
        };
        Ok(Self {
            namespaces: Arc::clone(namespaces),
            states: gauges(
                metrics,
                of,
                About::by(
                    "state",
                    State::ALL.map(state_name),
                    "trainjob_jobs",
                    "TrainJobs, by state.",
                ),
            )?,
            overdue_deadlines: LateGauges::new(metrics, of, OVERDUE_DEADLINES)?,
            horizons: gauges(
                metrics,
                of,
                About::by(
                    "horizon",
                    Horizon::ALL.map(horizon_name),
                    "trainjob_active_deadlines",
                    "Unfinished jobs with a running deadline, by the time left: up to that long, \
                 and longer than the one before.",
                ),
            )?,
            nearest: by_job(
                metrics,
                "trainjob_active_deadline_remaining_seconds",
                "Time left of the jobs that are nearest to their deadline.",
            )?,
            unreleased: LateGauges::new(metrics, of, UNRELEASED)?,
            oldest_unreleased: by_job(
                metrics,
                "trainjob_unreleased_seconds",
                "For how long those jobs have been failed that have been unreleased longest.",
            )?,
            blocked: plain(
                metrics,
                "trainjob_release_blocked",
                "Jobs failed by their deadline whose Pods are gone and whose JobSet is kept by \
                 a finalizer.",
            )?,
            pending: plain(
                metrics,
                "trainjob_ttl_pending_deletions",
                "Finished jobs with a TTL that is not yet due.",
            )?,
            overdue: LateGauges::new(metrics, of, OVERDUE_DELETIONS)?,
            terminating: plain(
                metrics,
                "trainjob_ttl_terminating",
                "Jobs past their TTL that are being deleted and still there.",
            )?,
            loops: metrics.gauge(
                "trainjob_ttl_recreate_loops",
                "Names whose jobs a TTL has deleted three times within the last hour, and somebody \
                 made again each time.",
            )?,
        })
    }

    /// Shows these and nothing of namespaces that have no jobs any more. What is `counted` begins with the namespaces
    /// that there are.
    pub(super) fn set(&self, job_stats: &JobStats<'_>, counted: &Jobs) {
        self.reset();
        self.set_group(&self.namespaces.rest(), &Counts::NONE);
        for (group, counts) in job_stats.groups() {
            counted.begin(group);
            self.set_group(group, counts);
        }
        set_by_job(&self.nearest, job_stats.nearest());
        set_by_job(&self.oldest_unreleased, job_stats.oldest_unreleased());
    }

    fn set_group(&self, group: &str, counts: &Counts) {
        for state in State::ALL {
            set(&self.states.of([state_name(state)], group), counts.in_state(state));
        }
        for horizon in Horizon::ALL {
            set(&self.horizons.of([horizon_name(horizon)], group), counts.within(horizon));
        }
        self.overdue_deadlines.set(group, counts.overdue_deadlines);
        self.unreleased.set(group, counts.unreleased);
        self.overdue.set(group, counts.overdue);
        set(&self.blocked.of([], group), counts.blocked);
        set(&self.pending.of([], group), counts.pending);
        set(&self.terminating.of([], group), counts.terminating);
    }

    fn reset(&self) {
        self.states.reset();
        self.horizons.reset();
        for late in [&self.overdue_deadlines, &self.unreleased, &self.overdue] {
            late.jobs.reset();
            late.longest.reset();
        }
        for gauge in [&self.blocked, &self.pending, &self.terminating] {
            gauge.reset();
        }
    }
}

/// A gauge with a series for each of a bounded number of jobs.
fn by_job(metrics: &mut Sampled, name: &str, help: &str) -> Result<IntGaugeVec> {
    let gauge = IntGaugeVec::new(Opts::new(name, help), &[JOB_NAMESPACE, "name"])?;
    metrics.add(gauge.clone());
    Ok(gauge)
}

/// Shows these jobs and no others.
fn set_by_job(gauge: &IntGaugeVec, jobs: Vec<(ObjectKey, i64)>) {
    gauge.reset();
    for (key, seconds) in jobs {
        gauge.with_label_values(&[&*key.namespace, &*key.name]).set(seconds);
    }
}

/// How many are late, and by how much.
struct LateGauges {
    jobs: Gauges<0, 1>,
    longest: Gauges<0, 1>,
}

impl LateGauges {
    fn new(
        metrics: &mut Sampled,
        namespaces: &JobNamespaces,
        [jobs, longest]: Lateness,
    ) -> Result<Self> {
        Ok(Self {
            jobs: gauges(metrics, namespaces, About::plain(jobs.0, jobs.1))?,
            longest: gauges(metrics, namespaces, About::plain(longest.0, longest.1))?,
        })
    }

    fn set(&self, group: &str, late: Late) {
        set(&self.jobs.of([], group), late.jobs);
        self.longest.of([], group).set(late.longest);
    }
}

const fn state_name(state: State) -> &'static str {
    match state {
        State::ManagedElsewhere => "managed_elsewhere",
        State::Terminating => "terminating",
        State::Finished(outcome) => label(outcome),
        State::Suspended => "suspended",
        State::Queued => "queued",
        State::Running => "running",
    }
}

const fn horizon_name(horizon: Horizon) -> &'static str {
    match horizon {
        Horizon::Minute => "1m",
        Horizon::TenMinutes => "10m",
        Horizon::Hour => "1h",
        Horizon::Day => "1d",
        Horizon::Later => "later",
    }
}
