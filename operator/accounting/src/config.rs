//! The configuration: a file, and what it means.
//!
//! The [file](mod@file) is read once and strictly, as that of the operator is: an unknown field, a field given twice or a
//! value out of range is an error that names the field.

use std::{net::SocketAddr, time::Duration};

use trainjob_accounting_core::settings;
use trainjob_core::lease::Times;
use trainjob_process::{
    config::{
        ConfigError, Flags, LeaderElection, MetricsServer, Problem, Served, Settings, Tls,
        check_times, read,
    },
    health::Endpoints,
};

use self::file::Configuration;

pub mod file;

/// The bounds of `holdLimit`.
const HOLD_LIMIT: (Duration, Duration) = (Duration::from_secs(10), Duration::from_hours(24));
/// How many labels may be copied.
const MOST_LABELS: usize = 16;

/// What the program uses, complete and valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How one of several replicas is chosen to work; `None`: whoever runs works.
    pub leader_election: Option<LeaderElection>,
    /// What decisions depend on.
    pub settings: settings::Settings,
    /// Labels of the TrainJob that its record gets.
    pub copy_labels: Vec<String>,
    /// How many requests are under way at the same time; 64 by default.
    pub concurrency: usize,
    health: Option<SocketAddr>,
    endpoints: Endpoints,
    metrics: Option<MetricsServer>,
    tls: Tls,
    warnings: Vec<String>,
}

impl Config {
    /// Where health and metrics are served.
    #[must_use]
    pub const fn served(&self) -> Served<'_> {
        Served {
            health: self.health,
            endpoints: &self.endpoints,
            metrics: self.metrics,
            tls: &self.tls,
        }
    }
}

impl Settings for Config {
    fn load(flags: &Flags) -> Result<Self, ConfigError> {
        let file = match &flags.config {
            Some(path) => read(path, check)?,
            None => Configuration::default(),
        };
        Ok(resolve(file))
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn clock_jump_pause(&self) -> Duration {
        // Nothing is deleted by time.
        Duration::ZERO
    }
}

/// Refuses fields that contradict each other.
fn check(file: &Configuration) -> Result<(), Problem> {
    if file.leader_election.leader_elect {
        check_times(times(&file.leader_election))?;
    }
    if file.metrics.auth.enabled && !file.metrics.secure_serving {
        let message = "true, but metrics.secureServing is false, expected both true or this false";
        return Err(Problem::new("metrics.auth.enabled", message));
    }
    let endpoints = endpoints(file);
    if endpoints.ready == endpoints.live {
        let message = format!("`{}` is the liveness endpoint, expected another", endpoints.ready);
        return Err(Problem::new("health.readinessEndpointName", message));
    }
    let (least, most) = HOLD_LIMIT;
    let limit = file.accounting.hold_limit.0;
    if !limit.is_zero() && !(least..=most).contains(&limit) {
        let message = format!("{limit:?}, expected 0 or a length of time from 10s to 24h");
        return Err(Problem::new("accounting.holdLimit", message));
    }
    let labels = file.accounting.copy_labels.len();
    if labels > MOST_LABELS {
        let message = format!("{labels} labels, expected at most {MOST_LABELS}");
        return Err(Problem::new("accounting.copyLabels", message));
    }
    Ok(())
}

/// What a file that has been checked means.
fn resolve(file: Configuration) -> Config {
    let endpoints = endpoints(&file);
    let Configuration { leader_election, metrics, health, accounting, .. } = file;
    let limit = accounting.hold_limit.0;
    let warnings = if leader_election.leader_elect {
        Vec::new()
    } else {
        vec!["leaderElection.leaderElect: false, so the operator marks no Pod".to_owned()]
    };
    Config {
        leader_election: leader_election.leader_elect.then(|| election(&leader_election)),
        settings: settings::Settings {
            gpu_resources: accounting.gpu_resources,
            batch_period: accounting.batch_period.get(),
            hold_limit: (!limit.is_zero()).then_some(limit),
            failure_messages: accounting.failure_messages,
        },
        copy_labels: accounting.copy_labels,
        concurrency: usize::try_from(accounting.concurrency.get()).unwrap_or(usize::MAX),
        health: health.health_probe_bind_address.get(),
        endpoints,
        metrics: metrics.bind_address.get().map(|address| MetricsServer {
            address,
            tls: metrics.secure_serving,
            auth: metrics.auth.enabled,
        }),
        tls: Tls::default(),
        warnings,
    }
}

fn election(election: &file::LeaderElection) -> LeaderElection {
    LeaderElection {
        times: times(election),
        name: election.resource_name.clone(),
        namespace: Some(election.resource_namespace.clone()).filter(|name| !name.is_empty()),
    }
}

const fn times(election: &file::LeaderElection) -> Times {
    Times {
        lease_duration: election.lease_duration.0,
        renew_deadline: election.renew_deadline.0,
        retry_period: election.retry_period.0,
    }
}

fn endpoints(file: &Configuration) -> Endpoints {
    Endpoints {
        ready: format!("/{}", file.health.readiness_endpoint_name.0),
        live: format!("/{}", file.health.liveness_endpoint_name.0),
    }
}
