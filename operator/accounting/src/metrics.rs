//! What is counted, in numbers. Bills come from records: a counter begins at 0 with each process.

use std::{collections::BTreeMap, sync::Arc};

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};
use trainjob_accounting_core::settings::Settings;
use trainjob_api::lifecycle::v1alpha1::{
    record::TrainJobRecordStatus,
    record_words::{FailedReason, Loss},
};
use trainjob_engine::lease;
use trainjob_process::{
    client::Clients,
    metrics::{Sampled, build_info, counter, counters, own},
};

use crate::{accountant::Accountant, book::Change};

/// What the names of its own metrics begin with.
pub const PREFIX: &str = "trainjob_accounting";

/// The kinds that are watched.
pub const WATCHED: [&str; 4] = ["Pod", "TrainJob", "TrainJobRecord", lease::KIND];

/// The metrics of one process, in a registry of their own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Succeeded, failed, deleted.
    pods: [IntCounter; 3],
    failures: IntCounterVec,
    /// GPU, cpu, memory.
    seconds: [IntCounter; 3],
    lost: IntCounterVec,
    /// Failed watches, in the order of [`WATCHED`].
    restarts: [IntCounter; 4],
    /// Events that were not sent.
    pub events_dropped: IntCounter,
}

impl Metrics {
    /// All at zero.
    ///
    /// # Errors
    ///
    /// If two of them have one name, or one has none: never, as the tests see.
    pub fn new() -> Result<Arc<Self>, prometheus::Error> {
        let registry = Registry::new();
        build_info(&registry, PREFIX)?;
        own(&registry)?;
        let name = |name: &str| format!("{PREFIX}_{name}");
        let vector = |name: &str, help: &str, values: &[&str]| {
            let vector = IntCounterVec::new(Opts::new(name, help), &["reason"])?;
            registry.register(Box::new(vector.clone()))?;
            for value in values {
                vector.with_label_values(&[*value]);
            }
            Ok::<_, prometheus::Error>(vector)
        };
        let reasons: Vec<_> = FailedReason::ALL.iter().map(|reason| reason.as_str()).collect();
        let losses: Vec<_> = Loss::ALL.iter().map(|loss| loss.as_str()).collect();
        Ok(Arc::new(Self {
            pods: counters(
                &registry,
                (&name("pods_total"), "Pods that were counted, by class."),
                "class",
                ["succeeded", "failed", "deleted"],
            )?,
            failures: vector(
                &name("pod_failures_total"),
                "Counted Pods that failed, by reason.",
                &reasons,
            )?,
            seconds: counters(
                &registry,
                (
                    &name("resource_seconds_total"),
                    "Seconds of GPUs, millicores and MiB of counted Pods, by resource.",
                ),
                "resource",
                ["gpu", "cpu", "memory_mib"],
            )?,
            lost: vector(
                &name("lost_pods_total"),
                "Pods that were not counted, by reason. A lower bound.",
                &losses,
            )?,
            restarts: counters(
                &registry,
                (&name("watch_restarts_total"), "Watches that failed and were begun anew, by kind."),
                "kind",
                WATCHED,
            )?,
            events_dropped: counter(
                &registry,
                &name("events_dropped_total"),
                "Events that were not sent because there were too many, or that an overloaded API server did not take.",
            )?,
            registry,
        }))
    }

    /// Shows also what is known from the answers to `clients`, and what is looked up in the book.
    ///
    /// # Errors
    ///
    /// They are shown already.
    pub fn show(
        &self,
        clients: &Clients,
        accountant: &Arc<Accountant>,
    ) -> Result<(), prometheus::Error> {
        clients.requests.register(&self.registry)?;
        let mut sampled = Sampled::default();
        let gauges = Gauges::new(&mut sampled)?;
        let accountant = Arc::clone(accountant);
        sampled.register(&self.registry, move || gauges.set(&accountant))
    }

    /// What they are to be read from.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What counts the failures of a watch of this kind.
    #[must_use]
    pub fn restarts(&self, kind: &str) -> Option<&IntCounter> {
        let mut known = self.restarts.iter().zip(WATCHED).filter(|(_, it)| *it == kind);
        known.next().map(|(counter, _)| counter)
    }

    /// A Pod was let go.
    pub fn let_go(&self) {
        self.lost.with_label_values(&[Loss::RecordUnwritable.as_str()]).inc();
    }

    /// A status was stored.
    pub fn stored(&self, change: &Change, settings: &Settings) {
        let Change { before, after } = change;
        let pods = |status: &TrainJobRecordStatus| {
            let pods = status.totals.pods;
            [pods.succeeded, pods.failed, pods.deleted]
        };
        add(&self.pods, pods(before), pods(after));
        let seconds = |status: &TrainJobRecordStatus| {
            let all = &status.totals.seconds;
            let gpus = all.iter().filter(|(name, _)| settings.is_gpu(name)).map(|(_, it)| *it);
            let of = |name: &str| all.get(name).copied().unwrap_or_default();
            [gpus.fold(0, u64::saturating_add), of("cpu"), of("memory")]
        };
        add(&self.seconds, seconds(before), seconds(after));
        let (before_by, after_by) = (reasons(before), reasons(after));
        for (reason, count) in after_by {
            let known = before_by.get(reason).copied().unwrap_or_default();
            self.failures.with_label_values(&[reason]).inc_by(count.saturating_sub(known));
        }
        let unwatched = Loss::Unwatched.as_str();
        let of = |status: &TrainJobRecordStatus| {
            status.lost.get(unwatched).copied().unwrap_or_default()
        };
        let lost = of(after).saturating_sub(of(before));
        self.lost.with_label_values(&[unwatched]).inc_by(lost);
    }
}

fn add(counters: &[IntCounter; 3], before: [u64; 3], after: [u64; 3]) {
    for ((counter, before), after) in counters.iter().zip(before).zip(after) {
        counter.inc_by(after.saturating_sub(before));
    }
}

/// How many Pods failed, by reason.
fn reasons(status: &TrainJobRecordStatus) -> BTreeMap<&'static str, u64> {
    let mut sum = BTreeMap::new();
    let jobs = &status.replicated_jobs;
    let attempts = jobs.iter().flat_map(|job| &job.attempts).map(|it| &it.sums);
    let earlier = jobs.iter().filter_map(|job| job.earlier.as_ref()).map(|it| &it.sums);
    for sums in attempts.chain(earlier) {
        for (word, count) in &sums.reasons {
            if let Some(reason) = FailedReason::of(word) {
                let of = sum.entry(reason.as_str()).or_insert(0_u64);
                *of = of.saturating_add(*count);
            }
        }
    }
    sum
}

/// What is looked up when somebody reads the page.
struct Gauges {
    leader: IntGauge,
    open: IntGauge,
    held: IntGauge,
    longest: IntGauge,
    refused: IntGauge,
    unwritable: IntGauge,
    records: IntGauge,
}

impl Gauges {
    fn new(metrics: &mut Sampled) -> Result<Self, prometheus::Error> {
        let mut gauge = |name: &str, help: &str| metrics.gauge(&format!("{PREFIX}_{name}"), help);
        Ok(Self {
            leader: gauge(
                "leader",
                "1 while this process leads, or where no leader is elected; else 0.",
            )?,
            open: gauge("open_pods", "Pods that are marked and not counted, as records have them.")?,
            held: gauge("held_pods", "Pods that have ended, are deleted, and wait for us.")?,
            longest: gauge(
                "held_longest_seconds",
                "For how long the Pod has waited that waits longest; 0 if none does.",
            )?,
            refused: gauge("refused_pods", "Pods whose release was refused.")?,
            unwritable: gauge("unwritable_records", "Records that cannot be written.")?,
            records: gauge("open_records", "Records with something left to do.")?,
        })
    }

    fn set(&self, accountant: &Accountant) {
        let leads = accountant.leader.holds();
        let numbers = accountant.book().numbers(accountant.now());
        let set = |gauge: &IntGauge, number: usize| {
            gauge.set(if leads { i64::try_from(number).unwrap_or(i64::MAX) } else { 0 });
        };
        self.leader.set(i64::from(leads));
        set(&self.open, numbers.open);
        set(&self.held, numbers.held);
        set(&self.longest, usize::try_from(numbers.longest.as_secs()).unwrap_or(usize::MAX));
        set(&self.refused, numbers.refused);
        set(&self.unwritable, numbers.unwritable);
        set(&self.records, numbers.records);
    }
}
