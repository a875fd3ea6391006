//! What is counted, in numbers. Bills come from records: a counter begins at 0 with each process.

mod gauges;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prometheus::{Histogram, IntCounter, IntCounterVec, Opts, Registry};
use trainjob_accounting_core::settings::Settings;
use trainjob_api::lifecycle::v1alpha1::{
    record::TrainJobRecordStatus,
    record_words::{DeletedReason, FailedReason, Loss, RecordCondition, RecordReason},
};
use trainjob_engine::lease;
use trainjob_process::{
    client::Clients,
    metrics::{JOB_NAMESPACE, Values, build_info, counter, histogram, histograms, own},
};

pub use self::gauges::show;
use crate::book::Change;

/// What the names of its own metrics begin with.
pub const PREFIX: &str = "trainjob_accounting";

/// What stands for namespaces that are not told apart, and for those beyond the limit.
const ALL: &str = "_all";
const OTHER: &str = "_other";

/// Upper bounds in seconds of how long a Pod waits: from what is aimed at to what the valve and the sweeper allow.
const LATENCY: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 7.0, 10.0, 30.0, 60.0, 240.0, 315.0];
/// Upper bounds of the size of a batch.
const BATCH: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 250.0, 500.0];

/// Why a Pod was not counted, as metrics and the log say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostReason {
    /// It went while no program watched.
    Unwatched,
    /// The record could not be written for `holdLimit`.
    RecordUnwritable,
    /// Its namespace terminates, so no record can be created.
    NamespaceTerminating,
    /// It had our finalizer and none of our labels.
    Unlabelled,
    /// The sweeper released it.
    Swept,
}

impl LostReason {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Unwatched,
        Self::RecordUnwritable,
        Self::NamespaceTerminating,
        Self::Unlabelled,
        Self::Swept,
    ];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unwatched => Loss::Unwatched.as_str(),
            Self::RecordUnwritable => Loss::RecordUnwritable.as_str(),
            Self::NamespaceTerminating => "NamespaceTerminating",
            Self::Unlabelled => "Unlabelled",
            Self::Swept => "Swept",
        }
    }
}

/// The metrics of one process, in a registry of their own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pods: IntCounterVec,
    failures: IntCounterVec,
    seconds: IntCounterVec,
    wasted: IntCounterVec,
    lost: IntCounterVec,
    restarts: IntCounterVec,
    /// Of deleted Pods, and of those that nobody waits for.
    latency: [Histogram; 2],
    batch: Histogram,
    /// Events that were not sent.
    pub events_dropped: IntCounter,
    /// The namespaces with a name; `None`: they are not told apart.
    namespaces: Option<Values>,
    /// The pairs of namespace and queue with names.
    queues: Values,
    /// Namespaces and queues as they are shown, whose counters have begun.
    begun: Mutex<BTreeSet<(Arc<str>, Arc<str>)>>,
}

impl Metrics {
    /// All at zero. So many namespaces have a name; `None`: they are not told apart.
    ///
    /// # Errors
    ///
    /// If two of them have one name, or one has none: never, as the tests see.
    pub fn new(namespaces: Option<usize>) -> Result<Arc<Self>, prometheus::Error> {
        let registry = Registry::new();
        build_info(&registry, PREFIX)?;
        own(&registry)?;
        let vector = |name: &str, help: &str, labels: &[&str]| {
            let vector = IntCounterVec::new(Opts::new(format!("{PREFIX}_{name}"), help), labels)?;
            registry.register(Box::new(vector.clone()))?;
            Ok::<_, prometheus::Error>(vector)
        };
        let lost =
            vector("lost_pods_total", "Pods that were not counted. A lower bound.", &["reason"])?;
        for reason in LostReason::ALL {
            lost.with_label_values(&[reason.as_str()]);
        }
        let restarts = vector(
            "watch_restarts_total",
            "Watches that failed and were begun anew, by kind.",
            &["kind"],
        )?;
        // It is there from the start, also where no leader is elected.
        restarts.with_label_values(&[lease::KIND]);
        let latency = (
            &*format!("{PREFIX}_release_latency_seconds"),
            "From the instant a Pod was seen to have ended to its release, by what it waited as.",
        );
        let batch =
            (&*format!("{PREFIX}_batch_pods"), "Pods that one write of a record has counted.");
        Ok(Arc::new(Self {
            pods: vector("pods_total", "Pods that were counted.", &[JOB_NAMESPACE, "class"])?,
            failures: vector(
                "pod_failures_total",
                "Counted Pods that failed.",
                &[JOB_NAMESPACE, "reason"],
            )?,
            seconds: vector(
                "resource_seconds_total",
                "Seconds of GPUs, millicores and MiB of counted Pods.",
                &[JOB_NAMESPACE, "queue", "resource"],
            )?,
            wasted: vector(
                "wasted_gpu_seconds_total",
                "Seconds of GPUs whose work was lost, by cause, once their record is final.",
                &[JOB_NAMESPACE, "reason"],
            )?,
            lost,
            restarts,
            latency: histograms(&registry, latency, &LATENCY, "waited", ["deleted", "finished"])?,
            batch: histogram(&registry, batch, &BATCH)?,
            events_dropped: counter(
                &registry,
                &format!("{PREFIX}_events_dropped_total"),
                "Events that were not sent because there were too many, or that an overloaded API server did not take.",
            )?,
            namespaces: namespaces.map(|most| Values::new(most, OTHER)),
            queues: Values::new(namespaces.unwrap_or_default().max(QUEUES), OTHER),
            begun: Mutex::default(),
            registry,
        }))
    }

    /// Shows also what is known from the answers to `clients`.
    ///
    /// # Errors
    ///
    /// It is shown already.
    pub fn show(&self, clients: &Clients) -> Result<(), prometheus::Error> {
        clients.requests.register(&self.registry)
    }

    /// What they are to be read from.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What counts the failed watches of a kind.
    #[must_use]
    pub fn restarts(&self, kind: &str) -> IntCounter {
        self.restarts.with_label_values(&[kind])
    }

    /// A Pod will not be counted.
    pub fn lost(&self, reason: LostReason) {
        self.lost.with_label_values(&[reason.as_str()]).inc();
    }

    /// A Pod was released, so long after it was seen to have ended.
    pub fn released(&self, is_deleted: bool, waited: Duration) {
        let [deleted, finished] = &self.latency;
        let of = if is_deleted { deleted } else { finished };
        of.observe(waited.as_secs_f64());
    }

    /// As what a namespace is shown.
    pub(crate) fn namespace(&self, namespace: &str) -> Arc<str> {
        self.namespaces.as_ref().map_or_else(|| ALL.into(), |values| values.shown(namespace))
    }

    /// As what a queue of a namespace is shown.
    pub(crate) fn queue(&self, namespace: &str, queue: &str) -> Arc<str> {
        // A slash is in no name.
        let pair = format!("{namespace}/{queue}");
        let shown = self.queues.shown(&pair);
        if *shown == *pair { queue.into() } else { OTHER.into() }
    }

    /// Begins the counters of a namespace and of one of its queues at zero, if they have not begun.
    ///
    /// Prometheus knows what a counter has gained only if it has seen it before. Records are counted in few steps, many in one,
    /// so what the first step adds must not be the beginning.
    pub(crate) fn begin(&self, namespace: &str, queue: &str) {
        let namespace = self.namespace(namespace);
        let queue = self.queue(&namespace, queue);
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if !begun.insert((Arc::clone(&namespace), Arc::clone(&queue))) {
            return;
        }
        for class in CLASSES {
            self.pods.with_label_values(&[&namespace, class]);
        }
        for resource in RESOURCES {
            self.seconds.with_label_values(&[&namespace, &queue, resource]);
        }
        for reason in FailedReason::ALL {
            self.failures.with_label_values(&[&namespace, reason.as_str()]);
        }
        for cause in causes() {
            self.wasted.with_label_values(&[&namespace, cause]);
        }
    }

    /// A status was stored, of a record in this namespace whose TrainJob is in this queue.
    pub fn stored(&self, (namespace, queue): (&str, &str), change: &Change, settings: &Settings) {
        let Change { before, after } = change;
        let namespace = self.namespace(namespace);
        let queue = self.queue(&namespace, queue);
        let (was, is) = (before.totals.pods, after.totals.pods);
        let mut batch = 0_u64;
        let [succeeded, failed, deleted] = CLASSES;
        for (class, was, is) in [
            (succeeded, was.succeeded, is.succeeded),
            (failed, was.failed, is.failed),
            (deleted, was.deleted, is.deleted),
        ] {
            batch += added(&self.pods, &[&namespace, class], was, is);
        }
        if batch > 0 {
            self.batch.observe(f64::from(u32::try_from(batch).unwrap_or(u32::MAX)));
        }
        let (was, is) = (seconds(before, settings), seconds(after, settings));
        for (resource, (was, is)) in RESOURCES.into_iter().zip(was.into_iter().zip(is)) {
            added(&self.seconds, &[&namespace, &queue, resource], was, is);
        }
        let known = reasons(before);
        for (reason, is) in reasons(after) {
            let was = known.get(reason).copied().unwrap_or_default();
            added(&self.failures, &[&namespace, reason], was, is);
        }
        let unwatched = LostReason::Unwatched.as_str();
        let [was, is] = [before, after].map(|it| it.lost.get(unwatched).copied().unwrap_or(0));
        added(&self.lost, &[unwatched], was, is);
        if becomes_final(before, after) {
            for (cause, is) in &after.totals.wasted_by_cause {
                added(&self.wasted, &[&namespace, cause], 0, *is);
            }
        }
    }
}

/// How Pods end, as metrics call it.
const CLASSES: [&str; 3] = ["succeeded", "failed", "deleted"];
/// What is counted in seconds, as metrics call it.
const RESOURCES: [&str; 3] = ["gpu", "cpu", "memory_mib"];

/// What the work of an attempt can be lost by (AW1).
fn causes() -> impl Iterator<Item = &'static str> {
    let stopped = [DeletedReason::Suspended, DeletedReason::Stopped];
    FailedReason::ALL.iter().map(|it| it.as_str()).chain(stopped.map(DeletedReason::as_str))
}

/// How many pairs of namespace and queue have names, at least.
const QUEUES: usize = 1_000;

/// Adds a difference; returns it. A series that is not [begun](Metrics::begin) and stays at zero is not begun here.
fn added(counters: &IntCounterVec, labels: &[&str], was: u64, is: u64) -> u64 {
    let more = is.saturating_sub(was);
    if more > 0 {
        counters.with_label_values(labels).inc_by(more);
    }
    more
}

/// Whether a record is final for the first time: what is wasted is told once.
fn becomes_final(before: &TrainJobRecordStatus, after: &TrainJobRecordStatus) -> bool {
    let of = |status: &TrainJobRecordStatus| {
        let mut all = status.conditions.iter();
        let found = all.find(|it| it.type_ == RecordCondition::Final.as_str());
        found.map(|it| (it.status == "True", it.reason == RecordReason::Reopened.as_str()))
    };
    let was_told = of(before).is_some_and(|(is_final, is_reopened)| is_final || is_reopened);
    !was_told && of(after).is_some_and(|(is_final, _)| is_final)
}

/// In the order of [`RESOURCES`].
fn seconds(status: &TrainJobRecordStatus, settings: &Settings) -> [u64; 3] {
    let all = &status.totals.seconds;
    let gpus = all.iter().filter(|(name, _)| settings.is_gpu(name)).map(|(_, it)| *it);
    let of = |name: &str| all.get(name).copied().unwrap_or_default();
    let gpus = gpus.fold(0, u64::saturating_add);
    [gpus, of("cpu"), of("memory")]
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
