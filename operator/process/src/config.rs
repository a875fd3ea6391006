//! The configuration of either process: a file, the flags, and what they make of them.
//!
//! [`Flags`] are read first; they may name a file. The [file](mod@file) has the format of Kubeflow Trainer, so
//! that a cluster can keep the one it has, and three sections more, `lifecycle`, `accounting` and `certificates`. It is
//! read once and strictly: an unknown field, a field given twice or a value out of range is an error, because a
//! setting that is silently not what it looks like is worse than an operator that does not start.
//! The result is a [`Config`], which is complete and valid.

use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use trainjob_core::{mark::Mode, observed};

use crate::health::Endpoints;
use file::{ClientConnection, Configuration, Controller, Events, Health, Lifecycle, Metrics};
use gates::Origin;

pub mod admission;
mod args;
pub mod companion;
mod election;
mod error;
pub mod file;
mod flags;
mod gates;
mod help;
mod read;
mod rules;
mod tls;
pub mod value;

pub use admission::Admission;
pub use election::{LeaderElection, check_times};
pub use error::{ConfigError, Problem};
pub use flags::{Flags, FlagsError};
pub use gates::{Gate, Gates};
pub use read::read;
pub use tls::Tls;

/// What the two processes use, complete and valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What decisions depend on.
    pub settings: observed::Settings,
    /// How many TrainJobs are worked on at the same time; 64 by default.
    pub concurrency: NonZeroUsize,
    /// How many bytes of manifests of unfinished TrainJobs are kept; 16 MiB by default.
    pub manifest_memory: usize,
    /// The limit of requests to the API server; `None`, the default: no limit.
    pub rate_limit: Option<Rate>,
    /// How one of several replicas is chosen to work; `None`, the default: whoever runs works.
    pub leader_election: Option<LeaderElection>,
    /// Where health is served; `None`: nowhere. Port 8081 of every interface by default.
    pub health_address: Option<SocketAddr>,
    /// The paths that health is served under; `/readyz` and `/healthz` by default.
    pub health_endpoints: Endpoints,
    /// How metrics are served; `None`: not at all. Over TLS on port 8443 of every interface by default.
    pub metrics: Option<MetricsServer>,
    /// How many of the jobs that are nearest to their deadline metrics show by name; 100 by default.
    pub nearest_deadlines: usize,
    /// How many namespaces of jobs metrics tell apart; 0, the default: none.
    pub job_namespaces: usize,
    /// How long what acts by time pauses after a jump of the API server's clock; 10 minutes by default.
    pub clock_jump_pause: Duration,
    /// The limit of Normal events; `None`: none are written. 5 a second and 50 at once by default.
    pub normal_events: Option<Rate>,
    /// Whether Pods are marked so that they are counted.
    pub accounting: Accounting,
    /// What only the admission server uses.
    pub admission: Admission,
    /// What to tell whoever runs the process, once; one line each.
    pub warnings: Vec<String>,
}

/// Whether Pods are marked, and who counts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accounting {
    /// What new JobSets are marked with; nothing by default.
    pub mode: Mode,
    /// Name of the Lease of the program that counts.
    pub lease_name: String,
    /// Namespace of it; `None`: that of the process.
    pub lease_namespace: Option<String>,
}

/// What a program reads at its start.
pub trait Settings: Sized {
    /// Reads what `flags` name; without a file, every default.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not YAML, or says something that is not allowed.
    fn load(flags: &Flags) -> Result<Self, ConfigError>;

    /// What to tell whoever runs the process, once; one line each.
    fn warnings(&self) -> &[String];

    /// How long what acts by time pauses after a jump of the API server's clock.
    fn clock_jump_pause(&self) -> Duration;
}

impl Settings for Config {
    fn load(flags: &Flags) -> Result<Self, ConfigError> {
        load(flags)
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn clock_jump_pause(&self) -> Duration {
        self.clock_jump_pause
    }
}

/// Where the servers beside the work listen, and how.
#[derive(Debug, Clone, Copy)]
pub struct Served<'a> {
    /// Where health is served; `None`: nowhere.
    pub health: Option<SocketAddr>,
    /// The paths of health.
    pub endpoints: &'a Endpoints,
    /// How metrics are served; `None`: not at all.
    pub metrics: Option<MetricsServer>,
    /// How TLS is spoken.
    pub tls: &'a Tls,
}

impl Config {
    /// Where the servers beside the work listen, and how.
    #[must_use]
    pub const fn served(&self) -> Served<'_> {
        Served {
            health: self.health_address,
            endpoints: &self.health_endpoints,
            metrics: self.metrics,
            tls: &self.admission.tls,
        }
    }
}

/// How metrics are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsServer {
    /// Where.
    pub address: SocketAddr,
    /// Whether over TLS.
    pub tls: bool,
    /// Whether metrics auth is on: a reader must be allowed to GET `/metrics`. Only over TLS.
    pub auth: bool,
}

/// A token bucket: a rate, and how far ahead of it a burst may get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Tokens a second; from 0.001 to 1,000,000.
    pub per_second: f64,
    /// Tokens that a full bucket holds.
    pub burst: NonZeroU32,
}

/// Reads the configuration that `flags` name; without a file, every default.
///
/// # Errors
///
/// If the file cannot be read, is not YAML, or says something that is not allowed; or if a feature is
/// switched on that this release does not have.
pub fn load(flags: &Flags) -> Result<Config, ConfigError> {
    let file = match &flags.config {
        Some(path) => read(path, rules::check)?,
        None => Configuration::default(),
    };
    let (in_file, in_flag) = (&file.feature_gates, &flags.feature_gates.0);
    if let Some((gate, origin)) = gates::unavailable(in_file, in_flag) {
        let message = "the status server is not part of this release, expected false";
        return Err(match (origin, &flags.config) {
            (Origin::File, Some(path)) => ConfigError::Invalid {
                path: path.clone(),
                problem: Problem::new(format!("featureGates.{gate:?}"), message),
            },
            _ => ConfigError::InvalidFlag {
                flag: "--feature-gates",
                problem: Problem::new(format!("{gate:?}"), message),
            },
        });
    }
    Ok(resolve(&file))
}

/// What a file that has been checked means.
fn resolve(file: &Configuration) -> Config {
    Config {
        settings: settings(&file.lifecycle),
        concurrency: concurrency(&file.controller),
        manifest_memory: size(file.controller.manifest_memory_mebibytes.get()) << 20,
        rate_limit: file.client_connection.as_ref().and_then(rate_limit),
        leader_election: election::resolve(&file.leader_election),
        health_address: file.health.health_probe_bind_address.get(),
        health_endpoints: health_endpoints(&file.health),
        metrics: metrics(&file.metrics),
        nearest_deadlines: size(file.metrics.nearest_deadlines.get()),
        job_namespaces: size(file.metrics.job_namespaces.get()),
        clock_jump_pause: Duration::from_secs(file.lifecycle.clock_jump_pause_seconds.get().into()),
        normal_events: normal_events(&file.lifecycle.events),
        accounting: accounting(&file.accounting),
        admission: admission::resolve(file),
        warnings: rules::warnings(file),
    }
}

fn settings(lifecycle: &Lifecycle) -> observed::Settings {
    observed::Settings {
        deadline_clock: lifecycle.deadline_clock,
        deletion_propagation: lifecycle.deletion_propagation,
        ttl_for_managed_elsewhere: lifecycle.ttl_for_managed_elsewhere,
        deadline_warning: lifecycle.deadline_warning_seconds.get(),
        maximum_hold: lifecycle.maximum_hold_seconds.get(),
    }
}

fn accounting(accounting: &file::Accounting) -> Accounting {
    Accounting {
        mode: accounting.mode,
        lease_name: accounting.lease_name.clone(),
        lease_namespace: Some(accounting.lease_namespace.clone()).filter(|name| !name.is_empty()),
    }
}

fn concurrency(controller: &Controller) -> NonZeroUsize {
    let of_train_jobs = controller.group_kind_concurrency.get(file::TRAIN_JOB);
    // It is at least 1.
    let number = size(of_train_jobs.unwrap_or(&file::CONCURRENCY).get());
    NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN)
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn rate_limit(connection: &ClientConnection) -> Option<Rate> {
    let per_second = connection.qps.get();
    let burst = NonZeroU32::new(connection.burst.get()).unwrap_or(NonZeroU32::MIN);
    (per_second > 0.0).then_some(Rate { per_second, burst })
}

fn normal_events(events: &Events) -> Option<Rate> {
    let per_second = events.normal_per_second.get();
    let burst = NonZeroU32::new(events.normal_burst.get())?;
    (per_second > 0.0).then_some(Rate { per_second, burst })
}

fn metrics(metrics: &Metrics) -> Option<MetricsServer> {
    Some(MetricsServer {
        address: metrics.bind_address.get()?,
        tls: metrics.secure_serving,
        auth: metrics.auth.asks(metrics.secure_serving),
    })
}

fn health_endpoints(health: &Health) -> Endpoints {
    Endpoints {
        ready: format!("/{}", health.readiness_endpoint_name.0),
        live: format!("/{}", health.liveness_endpoint_name.0),
    }
}
