//! The configuration of either process: a file, the flags, and what they make of them.
//!
//! [`Flags`] are read first; they may name a file. The [file](mod@file) has the format of Kubeflow Trainer, so
//! that a cluster can keep the one it has, and two sections more, `lifecycle` and `certificates`. It is
//! read once and strictly: an unknown field, a field given twice or a value out of range is an error, because a
//! setting that is silently not what it looks like is worse than an operator that does not start.
//! The result is a [`Config`], which is complete and valid.

use std::{
    collections::BTreeMap,
    net::{Ipv6Addr, SocketAddr},
    num::{NonZeroU32, NonZeroUsize},
};

use trainjob_core::{
    lifecycle::deadline::Clock,
    observed::{Propagation, Settings},
};

use crate::health::Endpoints;

pub mod admission;
mod args;
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
pub use election::LeaderElection;
pub use error::{ConfigError, Problem};
pub use flags::{Flags, FlagsError};
pub use gates::{Gate, Gates};
pub use help::Manual;
pub use tls::Tls;

use file::{
    ClientConnection, Configuration, DeadlineClock, DeletionPropagation, Health, Lifecycle, Metrics,
};
use gates::Origin;
use value::{BindAddress, Count, EndpointName, PerSecond};

/// The kind whose entry in `controller.groupKindConcurrency` counts.
const TRAIN_JOB: &str = "TrainJob.trainer.kubeflow.org";
/// The kinds that Trainer counts too, and that have no workers of their own here.
const OTHER_KINDS: [&str; 2] =
    ["TrainingRuntime.trainer.kubeflow.org", "ClusterTrainingRuntime.trainer.kubeflow.org"];
/// What `clientConnection` means where it says nothing itself.
const TRAINERS_LIMIT: Rate = Rate { per_second: 50.0, burst: NonZeroU32::MIN.saturating_add(99) };
/// How many TrainJobs are worked on at the same time unless the file says otherwise.
const DEFAULT_CONCURRENCY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
/// How many jobs metrics show by name unless the file says otherwise.
const DEFAULT_NEAREST: usize = 100;

/// What the two processes use, complete and valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What decisions depend on.
    pub settings: Settings,
    /// How many TrainJobs are worked on at the same time; 64 by default.
    pub concurrency: NonZeroUsize,
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
    /// The limit of Normal events; `None`: none are written. 5 a second and 50 at once by default.
    pub normal_events: Option<Rate>,
    /// What only the admission server uses.
    pub admission: Admission,
    /// What to tell whoever runs the process, once; one line each.
    pub warnings: Vec<String>,
}

/// How metrics are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsServer {
    /// Where.
    pub address: SocketAddr,
    /// Whether over TLS.
    pub tls: bool,
    /// Whether only to those who may GET `/metrics`. Only over TLS.
    pub for_the_authorised: bool,
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
        Some(path) => read::read(path)?,
        None => Configuration::default(),
    };
    let none = BTreeMap::new();
    let in_file = file.feature_gates.as_ref().unwrap_or(&none);
    if let Some((gate, origin)) = gates::unavailable(in_file, &flags.feature_gates.0) {
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
    let concurrency = file.controller.as_ref().and_then(|controller| {
        let of_train_jobs = controller.group_kind_concurrency.as_ref()?.get(TRAIN_JOB)?;
        NonZeroUsize::new(usize::try_from(of_train_jobs.get()).ok()?)
    });
    Config {
        settings: settings(file.lifecycle.as_ref()),
        concurrency: concurrency.unwrap_or(DEFAULT_CONCURRENCY),
        rate_limit: file.client_connection.as_ref().and_then(rate_limit),
        leader_election: election::resolve(file.leader_election.as_ref()),
        health_address: health_address(file.health.as_ref()),
        health_endpoints: health_endpoints(file.health.as_ref()),
        metrics: metrics(file.metrics.as_ref()),
        nearest_deadlines: nearest_deadlines(file.metrics.as_ref()),
        normal_events: normal_events(file.lifecycle.as_ref()),
        admission: admission::resolve(file),
        warnings: rules::warnings(file),
    }
}

fn settings(lifecycle: Option<&Lifecycle>) -> Settings {
    let Some(lifecycle) = lifecycle else { return Settings::default() };
    Settings {
        deadline_clock: match lifecycle.deadline_clock.unwrap_or_default() {
            DeadlineClock::Creation => Clock::Creation,
            DeadlineClock::LastResume => Clock::LastResume,
        },
        deletion_propagation: match lifecycle.deletion_propagation.unwrap_or_default() {
            DeletionPropagation::Foreground => Propagation::Foreground,
            DeletionPropagation::Background => Propagation::Background,
        },
        ttl_for_managed_elsewhere: lifecycle.ttl_for_managed_elsewhere.unwrap_or_default(),
    }
}

fn rate_limit(connection: &ClientConnection) -> Option<Rate> {
    let per_second = connection.qps.map_or(TRAINERS_LIMIT.per_second, PerSecond::get);
    let burst = connection.burst.map_or(TRAINERS_LIMIT.burst, |burst| {
        NonZeroU32::new(burst.get()).unwrap_or(NonZeroU32::MIN)
    });
    (per_second > 0.0).then_some(Rate { per_second, burst })
}

fn normal_events(lifecycle: Option<&Lifecycle>) -> Option<Rate> {
    let events = lifecycle.and_then(|lifecycle| lifecycle.events.as_ref());
    let per_second = events.and_then(|events| events.normal_per_second).map_or(5.0, PerSecond::get);
    let burst = events.and_then(|events| events.normal_burst).map_or(50, Count::get);
    NonZeroU32::new(burst).filter(|_| per_second > 0.0).map(|burst| Rate { per_second, burst })
}

fn health_address(health: Option<&Health>) -> Option<SocketAddr> {
    match health.and_then(|health| health.health_probe_bind_address).unwrap_or_default() {
        BindAddress::Default => Some((Ipv6Addr::UNSPECIFIED, 8081).into()),
        BindAddress::Off => None,
        BindAddress::At(address) => Some(address),
    }
}

fn metrics(metrics: Option<&Metrics>) -> Option<MetricsServer> {
    let address = match metrics.and_then(|metrics| metrics.bind_address).unwrap_or_default() {
        BindAddress::Default => (Ipv6Addr::UNSPECIFIED, 8443).into(),
        BindAddress::Off => return None,
        BindAddress::At(address) => address,
    };
    let auth = metrics.and_then(|metrics| metrics.auth.as_ref());
    Some(MetricsServer {
        address,
        tls: metrics.and_then(|metrics| metrics.secure_serving).unwrap_or(true),
        for_the_authorised: auth.and_then(|auth| auth.enabled).unwrap_or_default(),
    })
}

fn nearest_deadlines(metrics: Option<&Metrics>) -> usize {
    let given = metrics.and_then(|metrics| metrics.nearest_deadlines);
    given.map_or(DEFAULT_NEAREST, |given| usize::try_from(given.get()).unwrap_or(DEFAULT_NEAREST))
}

fn health_endpoints(health: Option<&Health>) -> Endpoints {
    let name = |of: fn(&Health) -> &Option<EndpointName>| {
        Some(format!("/{}", of(health?).as_ref()?.0.as_ref()?))
    };
    let default = Endpoints::default();
    Endpoints {
        ready: name(|health| &health.readiness_endpoint_name).unwrap_or(default.ready),
        live: name(|health| &health.liveness_endpoint_name).unwrap_or(default.live),
    }
}
