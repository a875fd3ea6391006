//! What is looked up when somebody reads the metrics: how jobs are, what waits, what is remembered.
//!
//! It costs one look at each job for each reading, and nothing in between. What is said of jobs is what
//! the leader sees; everybody else shows zero.

use std::sync::Arc;

use prometheus::{IntGauge, IntGaugeVec, Opts, Registry, Result};
use trainjob_core::{
    facts::ObjectKey,
    job_stats::{Horizon, JobStats, Late, State},
    mark::Mode,
    observed::Settings,
    priority::Priority,
};
use trainjob_engine::{clock::Clock, leader::LeaderGuard};
use trainjob_process::metrics::Sampled;

use super::{jobs::label, work::priority_name};
use crate::{accounting::Counting, cache::Cache, kinds::Kind, queue::Queue};

/// Where the truth is.
pub struct Sources {
    /// How jobs are.
    pub cache: Arc<Cache>,
    /// What waits.
    pub queue: Arc<Queue>,
    /// The time.
    pub clock: Clock,
    /// Whether this process leads.
    pub leader: LeaderGuard,
    /// What decisions depend on.
    pub settings: Settings,
    /// Whether Pods would be counted.
    pub counting: Arc<Counting>,
    /// How many of the nearest deadlines are shown with their jobs.
    pub nearest_deadlines: usize,
}

/// Shows the gauges that are looked up in these.
///
/// # Errors
///
/// There is a metric of one of their names.
pub fn show(registry: &Registry, sources: Sources) -> Result<()> {
    let mut metrics = Sampled::default();
    let (operator, jobs) = (OperatorGauges::new(&mut metrics)?, JobGauges::new(&mut metrics)?);
    metrics.register(registry, move || {
        let leads = sources.leader.holds();
        let works = operator.look(&sources, leads);
        let most = sources.nearest_deadlines;
        let now = sources.clock.now().stamp();
        let mut job_stats = JobStats::new(&sources.settings, now, most);
        if works && leads {
            sources.cache.count(&mut job_stats, now);
        }
        jobs.set(&job_stats);
        set(&jobs.loops, if leads { sources.cache.loops(now) } else { 0 });
    })
}

/// About the operator.
struct OperatorGauges {
    leader: IntGauge,
    accounting_alive: IntGauge,
    depth: [IntGauge; Priority::ALL.len()],
    oldest: [IntGauge; Priority::ALL.len()],
    timers: [IntGauge; 2],
    cached: [IntGauge; Kind::ALL.len()],
}

impl OperatorGauges {
    fn new(metrics: &mut Sampled) -> Result<Self> {
        let priorities = Priority::ALL.map(priority_name);
        Ok(Self {
            leader: metrics.gauge(
                "trainjob_operator_leader",
                "1 while this process leads, or where no leader is elected; else 0.",
            )?,
            accounting_alive: metrics.gauge(
                "trainjob_operator_accounting_alive",
                "1 while trainjob-accounting lives, as far as its Lease shows, or accounting is off; else 0.",
            )?,
            depth: metrics.gauges(
                ("trainjob_operator_queue_depth", "Jobs that wait to be worked on, by lane."),
                "lane",
                priorities,
            )?,
            oldest: metrics.gauges(
                (
                    "trainjob_operator_queue_oldest_seconds",
                    "For how long the job has waited that waits longest, by lane; 0 if none does.",
                ),
                "lane",
                priorities,
            )?,
            timers: metrics.gauges(
                ("trainjob_operator_timers", "Armed timers: alarms of the lifecycle, and retries."),
                "timer",
                ["alarm", "retry"],
            )?,
            cached: metrics.gauges(
                ("trainjob_operator_cached_objects", "Objects in the cache, by kind."),
                "kind",
                Kind::ALL.map(Kind::name),
            )?,
        })
    }

    /// Sets them; tells whether there is somebody who works.
    fn look(&self, sources: &Sources, leads: bool) -> bool {
        let numbers = sources.queue.numbers();
        self.leader.set(i64::from(leads));
        let accounting = sources.counting.now();
        let alive = accounting.mode == Mode::Off || accounting.program.lives();
        self.accounting_alive.set(i64::from(alive));
        for ((depth, oldest), waiting) in
            self.depth.iter().zip(&self.oldest).zip(numbers.priorities)
        {
            set(depth, waiting.keys);
            set(oldest, waiting.longest.as_secs());
        }
        for (timers, armed) in self.timers.iter().zip([numbers.requeues, numbers.retries]) {
            set(timers, armed);
        }
        for (cached, objects) in self.cached.iter().zip(sources.cache.sizes()) {
            set(cached, objects);
        }
        numbers.open
    }
}

/// About jobs.
struct JobGauges {
    states: [IntGauge; State::ALL.len()],
    overdue_deadlines: LateGauges,
    horizons: [IntGauge; Horizon::ALL.len()],
    nearest: IntGaugeVec,
    unreleased: LateGauges,
    oldest_unreleased: IntGaugeVec,
    blocked: IntGauge,
    pending: IntGauge,
    overdue: LateGauges,
    terminating: IntGauge,
    loops: IntGauge,
}

impl JobGauges {
    fn new(metrics: &mut Sampled) -> Result<Self> {
        Ok(Self {
            states: metrics.gauges(
                ("trainjob_jobs", "TrainJobs, by state."),
                "state",
                State::ALL.map(state_name),
            )?,
            overdue_deadlines: LateGauges::new(metrics, ("trainjob_overdue_deadlines", "Unfinished jobs whose deadline is due; about 0 in health."), ("trainjob_overdue_deadlines_longest_seconds", "For how long the longest overdue deadline has been due; 0 if there is none."))?,
            horizons: metrics.gauges(
                (
                    "trainjob_active_deadlines",
                    "Unfinished jobs with a running deadline, by the time left: up to that long, and \
                     longer than the one before.",
                ),
                "horizon",
                Horizon::ALL.map(horizon_name),
            )?,
            nearest: by_job(
                metrics,
                "trainjob_active_deadline_remaining_seconds",
                "Time left of the jobs that are nearest to their deadline.",
            )?,
            unreleased: LateGauges::new(metrics, ("trainjob_unreleased", "Jobs failed by their deadline that are not yet released."), ("trainjob_unreleased_longest_seconds", "For how long the longest unreleased job has been failed; 0 if there is none."))?,
            oldest_unreleased: by_job(
                metrics,
                "trainjob_unreleased_seconds",
                "For how long those jobs have been failed that have been unreleased longest.",
            )?,
            blocked: metrics.gauge(
                "trainjob_release_blocked",
                "Jobs failed by their deadline whose Pods are gone and whose JobSet is kept by a \
                 finalizer.",
            )?,
            pending: metrics.gauge(
                "trainjob_ttl_pending_deletions",
                "Finished jobs with a TTL that is not yet due.",
            )?,
            overdue: LateGauges::new(metrics, ("trainjob_ttl_overdue_deletions", "Finished jobs whose TTL is due and that are not being deleted; about 0 in health."), ("trainjob_ttl_overdue_longest_seconds", "For how long the longest overdue TTL deletion has been due; 0 if there is none."))?,
            terminating: metrics.gauge(
                "trainjob_ttl_terminating",
                "Jobs past their TTL that are being deleted and still there.",
            )?,
            loops: metrics.gauge(
                "trainjob_ttl_recreate_loops",
                "Names whose jobs a TTL has deleted three times within the last hour, and somebody made \
                 again each time.",
            )?,
        })
    }

    fn set(&self, job_stats: &JobStats<'_>) {
        for (gauge, state) in self.states.iter().zip(State::ALL) {
            set(gauge, job_stats.in_state(state));
        }
        for (gauge, horizon) in self.horizons.iter().zip(Horizon::ALL) {
            set(gauge, job_stats.within(horizon));
        }
        set_by_job(&self.nearest, job_stats.nearest());
        set_by_job(&self.oldest_unreleased, job_stats.oldest_unreleased());
        self.overdue_deadlines.set(job_stats.overdue_deadlines);
        self.unreleased.set(job_stats.unreleased);
        self.overdue.set(job_stats.overdue);
        set(&self.blocked, job_stats.blocked);
        set(&self.pending, job_stats.pending);
        set(&self.terminating, job_stats.terminating);
    }
}

/// A gauge with a series for each of a bounded number of jobs.
fn by_job(metrics: &mut Sampled, name: &str, help: &str) -> Result<IntGaugeVec> {
    let gauge = IntGaugeVec::new(Opts::new(name, help), &["namespace", "name"])?;
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
    jobs: IntGauge,
    longest: IntGauge,
}

impl LateGauges {
    fn new(metrics: &mut Sampled, jobs: (&str, &str), longest: (&str, &str)) -> Result<Self> {
        Ok(Self {
            jobs: metrics.gauge(jobs.0, jobs.1)?,
            longest: metrics.gauge(longest.0, longest.1)?,
        })
    }

    fn set(&self, late: Late) {
        set(&self.jobs, late.jobs);
        self.longest.set(late.longest);
    }
}

fn set(gauge: &IntGauge, number: impl TryInto<i64>) {
    gauge.set(number.try_into().unwrap_or(i64::MAX));
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
