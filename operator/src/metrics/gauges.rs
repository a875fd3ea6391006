//! What is looked up when somebody reads the metrics: how jobs are, what waits, what is remembered.
//!
//! How a job stands is kept up to date as its facts change; a reading adds that up. What is said of jobs is what the leader
//! sees; everybody else shows zero.

use std::sync::Arc;

use prometheus::{IntGauge, Registry, Result};
use trainjob_core::{job_stats::JobStats, mark::Mode, observed::Settings, priority::Priority};
use trainjob_engine::{clock::Clock, leader::LeaderGuard};
use trainjob_process::metrics::Sampled;

use super::{by_namespace::set, jobs::Jobs, of_jobs::JobGauges, work::priority_name};
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

/// Shows the gauges that are looked up in these. What is `counted` begins with the namespaces that are found.
///
/// # Errors
///
/// There is a metric of one of their names.
pub fn show(registry: &Registry, counted: Arc<Jobs>, sources: Sources) -> Result<()> {
    let mut metrics = Sampled::default();
    let operator = OperatorGauges::new(&mut metrics)?;
    let jobs = JobGauges::new(&mut metrics, counted.namespaces())?;
    metrics.register(registry, move || {
        let leads = sources.leader.holds();
        let works = operator.look(&sources, leads);
        let most = sources.nearest_deadlines;
        let now = sources.clock.now().stamp();
        let mut job_stats = JobStats::new(&sources.settings, now, most);
        if works && leads {
            sources.cache.count(&mut job_stats, now, |name| counted.namespaces().shown(name));
        }
        jobs.set(&job_stats, &counted);
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
