//! The queue and the time.

use prometheus::{Gauge, IntGauge, Result};
use trainjob_engine::queue::numbers::Numbers;
use trainjob_process::metrics::Sampled;

use crate::{
    key::Priority,
    metrics::{PREFIX, priority_name},
};

/// What is said of the API server's time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    /// Whether decisions are made by it.
    pub(super) is_good: bool,
    /// By how many seconds it is ahead of this machine's; `None` before the first answer.
    pub(super) offset: Option<f64>,
}

/// The gauges about what the program is busy with.
pub(super) struct Work {
    leader: IntGauge,
    depth: [IntGauge; 2],
    oldest: [IntGauge; 2],
    timers: [IntGauge; 2],
    slow_flows: IntGauge,
    clock_offset: Gauge,
    clock_good: IntGauge,
}

impl Work {
    pub(super) fn new(metrics: &mut Sampled) -> Result<Self> {
        let name = |name: &str| format!("{PREFIX}_{name}");
        let lanes = [Priority::Scheduled, Priority::Backlog].map(priority_name);
        let clock_offset = Gauge::new(
            name("clock_offset_seconds"),
            "Clock of the API server minus that of this machine, most likely; NaN before the first answer.",
        )?;
        metrics.add(clock_offset.clone());
        Ok(Self {
            leader: metrics.gauge(
                &name("leader"),
                "1 while this process leads, or where no leader is elected; else 0.",
            )?,
            depth: metrics.gauges(
                (&name("queue_depth"), "Objects that wait to be worked on, by lane."),
                "lane",
                lanes,
            )?,
            oldest: metrics.gauges(
                (
                    &name("queue_oldest_seconds"),
                    "For how long the object has waited that waits longest, by lane; 0 if none does.",
                ),
                "lane",
                lanes,
            )?,
            timers: metrics.gauges(
                (&name("timers"), "Armed timers: alarms of objects that come due, and retries."),
                "timer",
                ["alarm", "retry"],
            )?,
            slow_flows: metrics.gauge(
                &name("slow_flows"),
                "Kinds in a namespace whose requests are answered slowly, or whose deletions fail and back off.",
            )?,
            clock_offset,
            clock_good: metrics.gauge(
                &name("clock_good"),
                "1 while the API server's time is known well enough to delete by; else 0.",
            )?,
        })
    }

    /// Sets how many flows are slow or back off.
    pub(super) fn set_flows(&self, flows: usize) {
        set(&self.slow_flows, flows);
    }

    /// Sets what is said of the queue, and whether this process leads.
    pub(super) fn set_queue(&self, queue: &Numbers, is_leader: bool) {
        self.leader.set(i64::from(is_leader));
        for ((depth, oldest), waiting) in self.depth.iter().zip(&self.oldest).zip(&queue.priorities)
        {
            set(depth, waiting.keys);
            set(oldest, waiting.longest.as_secs());
        }
        for (timers, armed) in self.timers.iter().zip([queue.requeues, queue.retries]) {
            set(timers, armed);
        }
    }

    /// Sets what is said of the time.
    pub(super) fn set_time(&self, time: Time) {
        self.clock_good.set(i64::from(time.is_good));
        self.clock_offset.set(time.offset.unwrap_or(f64::NAN));
    }
}

fn set(gauge: &IntGauge, number: impl TryInto<i64>) {
    gauge.set(number.try_into().unwrap_or(i64::MAX));
}
