//! What is looked up when somebody reads the page. Only the leader shows Pods and records.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prometheus::{IntGauge, IntGaugeVec, Opts, Result};
use trainjob_process::metrics::{JOB_NAMESPACE, Sampled};

use super::{Metrics, PREFIX};
use crate::{accountant::Accountant, book::Numbers};

/// How often it is counted what there is, however often somebody reads.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// Shows what is looked up in the book, among the metrics of the accountant.
///
/// # Errors
///
/// There is a metric of one of these names.
pub fn show(accountant: &Arc<Accountant>) -> Result<()> {
    let mut sampled = Sampled::default();
    let gauges = Gauges::new(&mut sampled)?;
    let shown = Arc::clone(accountant);
    let recent = Mutex::new(Recent::default());
    sampled.register(accountant.metrics.registry(), move || {
        if !shown.leader.holds() {
            return gauges.set(false, &Numbers::default(), &shown.metrics);
        }
        let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
        gauges.set(true, recent.numbers(&shown), &shown.metrics);
    })
}

/// The numbers of a moment ago. Every Pod is looked at for them, while nobody else can look at any.
#[derive(Default)]
struct Recent {
    numbers: Numbers,
    counted: Option<Duration>,
}

impl Recent {
    fn numbers(&mut self, accountant: &Accountant) -> &Numbers {
        let now = accountant.now();
        if self.counted.is_none_or(|counted| now.clock.saturating_sub(counted) >= COUNT_EVERY) {
            self.numbers = accountant.book().numbers(&accountant.settings, now);
            self.counted = Some(now.clock);
        }
        &self.numbers
    }
}

struct Gauges {
    leader: IntGauge,
    open: IntGauge,
    held: IntGauge,
    longest: IntGauge,
    refused: IntGauge,
    unwritable: IntGauge,
    /// Open, final.
    records: [IntGauge; 2],
    gpus: IntGaugeVec,
}

impl Gauges {
    fn new(metrics: &mut Sampled) -> Result<Self> {
        let gpus = IntGaugeVec::new(
            Opts::new(format!("{PREFIX}_active_gpus"), "GPUs of Pods that run."),
            &[JOB_NAMESPACE, "queue"],
        )?;
        metrics.add(gpus.clone());
        let records =
            (&*format!("{PREFIX}_records"), "TrainJobRecords, by whether something may be added.");
        let records = metrics.gauges(records, "state", ["open", "final"])?;
        let mut gauge = |name: &str, help: &str| metrics.gauge(&format!("{PREFIX}_{name}"), help);
        Ok(Self {
            leader: gauge(
                "leader",
                "1 while this process leads, or where no leader is elected; else 0.",
            )?,
            open: gauge(
                "open_pods",
                "Pods that are marked and not counted, as records have them.",
            )?,
            held: gauge("held_pods", "Pods that have ended, are deleted, and have the finalizer.")?,
            longest: gauge(
                "held_longest_seconds",
                "For how long the Pod has been held that is held longest; 0 if none is.",
            )?,
            refused: gauge("refused_pods", "Pods whose release is refused.")?,
            unwritable: gauge("unwritable_records", "Records that cannot be written.")?,
            records,
            gpus,
        })
    }

    fn set(&self, leads: bool, numbers: &Numbers, metrics: &Metrics) {
        let set = |gauge: &IntGauge, number: usize| {
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        };
        self.leader.set(i64::from(leads));
        self.open.set(i64::try_from(numbers.open).unwrap_or(i64::MAX));
        set(&self.held, numbers.held);
        self.longest.set(i64::try_from(numbers.longest.as_secs()).unwrap_or(i64::MAX));
        set(&self.refused, numbers.refused);
        set(&self.unwritable, numbers.unwritable);
        for (gauge, number) in self.records.iter().zip(numbers.records) {
            set(gauge, number);
        }
        for (namespace, queue) in &numbers.sources {
            metrics.begin(namespace, queue);
        }
        self.gpus.reset();
        for ((namespace, queue), gpus) in &numbers.gpus {
            let namespace = metrics.namespace(namespace);
            let queue = metrics.queue(&namespace, queue);
            let gauge = self.gpus.with_label_values(&[&*namespace, &*queue]);
            // Several may share a name.
            gauge.add(i64::try_from(*gpus).unwrap_or(i64::MAX));
        }
    }
}

/// Shows these numbers of a leader, among these metrics.
#[cfg(test)]
pub(super) fn show_numbers(metrics: &Arc<Metrics>, numbers: Numbers) {
    let mut sampled = Sampled::default();
    let gauges = Gauges::new(&mut sampled).unwrap();
    let shown = Arc::clone(metrics);
    let look = move || gauges.set(true, &numbers, &shown);
    sampled.register(metrics.registry(), look).unwrap();
}
