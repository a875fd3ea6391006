//! What the operator does, and how jobs fare, in numbers (`docs/metrics.md`).
//!
//! [Counters about jobs](jobs) count only what the API server has accepted, by the process that asked for
//! it; [those about the operator](work) what it has been busy with. [Gauges](gauges), also those about [the time](clock), are looked up when they
//! are read. Every series is there from the start, and none is added by a job, but for the few nearest
//! deadlines and for [namespaces](by_namespace) up to a bound: a hundred thousand jobs leave `/metrics` as long as it was.

mod by_namespace;
mod clock;
pub mod gauges;
pub mod jobs;
mod of_jobs;
pub mod work;

use std::sync::Arc;

use prometheus::Registry;
use trainjob_process::{
    client::Clients,
    metrics::{build_info, own},
};

use self::{by_namespace::JobNamespaces, gauges::Sources, jobs::Jobs, work::Work};

/// What the names of the operator's own metrics begin with.
pub const PREFIX: &str = "trainjob_operator";

/// The metrics of one operator, in a registry of their own.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// What has been done for jobs.
    pub jobs: Arc<Jobs>,
    /// What the operator is busy with.
    pub work: Work,
}

impl Metrics {
    /// All that are counted, at zero. So many namespaces of jobs are told apart; 0: none.
    ///
    /// # Errors
    ///
    /// If two of them have one name, or one has none: never, as the tests see.
    pub fn new(job_namespaces: usize) -> Result<Arc<Self>, prometheus::Error> {
        let registry = Registry::new();
        build_info(&registry, PREFIX)?;
        own(&registry)?;
        let namespaces = Arc::new(JobNamespaces::new(job_namespaces));
        let jobs = Arc::new(Jobs::new(&registry, namespaces)?);
        let work = Work::new(&registry)?;
        Ok(Arc::new(Self { registry, jobs, work }))
    }

    /// Shows also what is known from the answers to `clients` and what is looked up in `sources`.
    ///
    /// # Errors
    ///
    /// They are shown already.
    pub fn show(&self, clients: &Clients, sources: Sources) -> Result<(), prometheus::Error> {
        clients.requests.register(&self.registry)?;
        clock::show(&self.registry, Arc::clone(&clients.server_time))?;
        gauges::show(&self.registry, Arc::clone(&self.jobs), sources)
    }

    /// What they are to be read from.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }
}
