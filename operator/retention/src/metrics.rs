//! What the retention engine does, in numbers (`docs/retention.md`, 7).
//!
//! Here is what is counted when it happens: by this process, and of deletions what the API server has accepted. What is
//! looked up when somebody reads the page is in [`gauges`](crate::gauges). No label has more values than the page says.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use prometheus::{Histogram, IntCounter, IntCounterVec, Opts, Registry};
use trainjob_api::time::Timestamp;
use trainjob_core::queue_position::QueuePriority;
use trainjob_engine::{
    error::{FailureReason, RequestError},
    lease,
};
use trainjob_process::{
    client::Clients,
    metrics::{Values, build_info, counter, histogram, histograms, own},
};
use trainjob_retention_core::{outcome::Outcome, plan::Source};

use crate::{
    cluster_state::Deletion,
    key::{Priority, position},
};

/// What the names of its own metrics begin with.
pub const PREFIX: &str = "trainjob_retention";

/// How many kinds have a name on the page; the others are `other`.
const MOST_KINDS: usize = 50;
/// How many names of policies are on the page; the others are `other`.
const MOST_POLICIES: usize = 200;
/// What stands for all that find no room.
const OTHER: &str = "other";

/// Upper bounds of lateness in seconds: from what is aimed at (milliseconds) over what is still scheduled (a minute) to
/// a backlog of days.
const LATENESS: [f64; 14] =
    [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 600.0, 3_600.0, 86_400.0, 604_800.0];
/// Upper bounds in seconds of how long an evaluation takes: a hundred thousand objects may take one (R63).
const EVALUATION: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// The metrics of one process, in a registry of their own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    deletions: Deletions,
    evaluation: Histogram,
    restarts: IntCounterVec,
    /// Events that were not sent.
    pub events_dropped: IntCounter,
    /// The values of the label `kind`.
    pub kinds: Values,
    /// The values of the label `policy`.
    pub policies: Values,
    /// Policies and kinds as they are shown, whose counters have begun.
    begun: Mutex<BTreeSet<(Arc<str>, Arc<str>)>>,
}

#[derive(Debug)]
struct Deletions {
    accepted: IntCounterVec,
    failed: IntCounterVec,
    /// In the order of [`QueuePriority::ALL`].
    latency: [Histogram; 2],
}

impl Deletions {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let vector = |name: &str, help: &str, labels: &[&str]| {
            let vector = IntCounterVec::new(Opts::new(format!("{PREFIX}_{name}"), help), labels)?;
            registry.register(Box::new(vector.clone()))?;
            Ok::<_, prometheus::Error>(vector)
        };
        Ok(Self {
            accepted: vector(
                "deletions_total",
                "Deletions that the API server has accepted.",
                &["policy", "kind", "outcome", "source"],
            )?,
            failed: vector(
                "deletion_failures_total",
                "Deletions that failed.",
                &["kind", "reason"],
            )?,
            latency: histograms(
                registry,
                (
                    &format!("{PREFIX}_deletion_latency_seconds"),
                    "From the instant a deletion was due to its acceptance, by priority.",
                ),
                &LATENESS,
                "priority",
                [Priority::Scheduled, Priority::Backlog].map(priority_name),
            )?,
        })
    }
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
        let deletions = Deletions::new(&registry)?;
        let evaluation = histogram(
            &registry,
            (
                &format!("{PREFIX}_evaluation_duration_seconds"),
                "How long it takes to evaluate all objects of the kinds whose policies have changed.",
            ),
            &EVALUATION,
        )?;
        let restarts = Opts::new(
            format!("{PREFIX}_watch_restarts_total"),
            "Watches that failed and were begun anew, by kind.",
        );
        let restarts = IntCounterVec::new(restarts, &["kind"])?;
        registry.register(Box::new(restarts.clone()))?;
        // It is there from the start, also where no leader is elected.
        restarts.with_label_values(&[lease::KIND]);
        let events_dropped = counter(
            &registry,
            &format!("{PREFIX}_events_dropped_total"),
            "Events that were not sent because there were too many, or that an overloaded API server did not take.",
        )?;
        Ok(Arc::new(Self {
            registry,
            deletions,
            evaluation,
            restarts,
            events_dropped,
            kinds: Values::new(MOST_KINDS, OTHER),
            policies: Values::new(MOST_POLICIES, OTHER),
            begun: Mutex::default(),
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

    /// What counts the failed watches of a kind: one of the program's own, or one that is [shown](Self::kinds).
    #[must_use]
    pub fn restarts(&self, kind: &str) -> IntCounter {
        self.restarts.with_label_values(&[kind])
    }

    /// What they are to be read from.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Begins the counter of failures of a kind at zero, if it has not begun.
    pub fn begin_kind(&self, kind: &str) {
        let kind = self.kinds.shown(kind);
        for reason in FailureReason::ALL {
            self.deletions.failed.with_label_values(&[&*kind, reason.name()]);
        }
    }

    /// Begins the counters of a policy for this kind at zero, if they have not begun.
    ///
    /// Prometheus knows what a counter has gained only if it has seen it before, and a policy may delete everything at once.
    pub fn begin_policy(&self, policy: &str, kind: &str) {
        let (policy, kind) = (self.policies.shown(policy), self.kinds.shown(kind));
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if !begun.insert((Arc::clone(&policy), Arc::clone(&kind))) {
            return;
        }
        for outcome in Outcome::ALL.map(outcome) {
            for source in SOURCES {
                let labels = [&*policy, &*kind, outcome, source];
                self.deletions.accepted.with_label_values(&labels);
            }
        }
    }

    /// A deletion of an object of this kind was accepted at `now`, a time of the API server's clock.
    pub fn deleted(&self, kind: &str, deletion: &Deletion, now: SystemTime) {
        self.accepted(kind, deletion, source(deletion), now);
    }

    /// The deletion of a Pod of an object of this kind, which goes before it, was accepted at `now`.
    pub fn pod_deleted(&self, kind: &str, deletion: &Deletion, now: SystemTime) {
        self.accepted(kind, deletion, PODS, now);
    }

    fn accepted(&self, kind: &str, deletion: &Deletion, source: &str, now: SystemTime) {
        let (policy, kind) = (self.policies.shown(&deletion.policy.name), self.kinds.shown(kind));
        let labels = [&*policy, &*kind, outcome(deletion.outcome), source];
        self.deletions.accepted.with_label_values(&labels).inc();
        let due = deletion.due.at;
        let late = now.duration_since(due.into()).unwrap_or(Duration::ZERO);
        let priority = position(Some(due), Some(Timestamp::from(now))).priority;
        for (latency, _) in
            self.deletions.latency.iter().zip(Priority::ALL).filter(|(_, it)| **it == priority)
        {
            latency.observe(late.as_secs_f64());
        }
    }

    /// A deletion of an object of this kind has failed.
    pub fn failed(&self, kind: &str, error: &RequestError) {
        if let Some(reason) = error.reason().map(FailureReason::name) {
            self.deletions.failed.with_label_values(&[&*self.kinds.shown(kind), reason]).inc();
        }
    }

    /// All objects of the kinds that had to be evaluated were, within so long.
    pub fn evaluated(&self, took: Duration) {
        self.evaluation.observe(took.as_secs_f64());
    }
}

/// The value of the label `priority`, and of `lane` of the queue.
pub(crate) const fn priority_name(priority: Priority) -> &'static str {
    match priority {
        Priority::Scheduled => "scheduled",
        Priority::Backlog => "backlog",
    }
}

const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Other => "other",
        Outcome::Deactivated => "deactivated",
    }
}

/// The source of the deletion of a Pod, and of that of an owner.
const PODS: &str = "pods";
const OWNER_SOURCE: &str = "owner";
/// All values of the label `source`.
const SOURCES: [&str; 7] =
    ["policy", "count", "annotation", "own_ttl", "maximum", PODS, OWNER_SOURCE];

const fn source(deletion: &Deletion) -> &'static str {
    match (&deletion.owner, deletion.due.source) {
        (Some(_), _) => OWNER_SOURCE,
        (None, Source::Policy) => "policy",
        (None, Source::Count) => "count",
        (None, Source::Annotation) => "annotation",
        (None, Source::OwnTtl) => "own_ttl",
        (None, Source::Maximum) => "maximum",
    }
}

#[cfg(test)]
mod tests;
