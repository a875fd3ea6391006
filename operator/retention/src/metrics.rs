//! What the retention engine does, in numbers (`docs/retention.md`, 7).
//!
//! So far: the process, its requests, and deletions.

use std::sync::Arc;

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use trainjob_engine::error::{FailureReason, RequestError};
use trainjob_process::{
    client::Clients,
    metrics::{build_info, counter, own},
};
use trainjob_retention_core::{outcome::Outcome, plan::Source};

use crate::room::Deletion;

/// What the names of its own metrics begin with.
pub const PREFIX: &str = "trainjob_retention";

/// The metrics of one process, in a registry of their own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    deletions: IntCounterVec,
    failures: IntCounterVec,
    /// Failed watches of the Lease.
    pub restarts: IntCounter,
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
        let vector = |name: &str, help: &str, labels: &[&str]| {
            let vector = IntCounterVec::new(Opts::new(format!("{PREFIX}_{name}"), help), labels)?;
            registry.register(Box::new(vector.clone()))?;
            Ok::<_, prometheus::Error>(vector)
        };
        let deletions = vector(
            "deletions_total",
            "Deletions that the API server has accepted.",
            &["kind", "outcome", "source"],
        )?;
        let failures =
            vector("deletion_failures_total", "Deletions that failed.", &["kind", "reason"])?;
        let restarts = counter(
            &registry,
            "trainjob_retention_watch_restarts_total",
            "Failed watches of the Lease.",
        )?;
        let events_dropped = counter(
            &registry,
            "trainjob_retention_events_dropped_total",
            "Events that were not sent because there were too many.",
        )?;
        Ok(Arc::new(Self { registry, deletions, failures, restarts, events_dropped }))
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

    /// A deletion was sent, and has failed with this, if it has.
    pub fn deleted(&self, kind: &str, deletion: &Deletion, error: Option<&RequestError>) {
        match error {
            None => {
                let labels = [kind, outcome(deletion.outcome), source(deletion)];
                self.deletions.with_label_values(&labels).inc();
            }
            Some(error) => {
                if let Some(reason) = error.reason().map(FailureReason::name) {
                    self.failures.with_label_values(&[kind, reason]).inc();
                }
            }
        }
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

const fn source(deletion: &Deletion) -> &'static str {
    match (&deletion.owner, deletion.due.source) {
        (Some(_), _) => "owner",
        (None, Source::Policy) => "policy",
        (None, Source::Count) => "count",
        (None, Source::Annotation) => "annotation",
        (None, Source::OwnTtl) => "own_ttl",
        (None, Source::Maximum) => "maximum",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own() {
        assert!(Metrics::new().is_ok());
    }
}
