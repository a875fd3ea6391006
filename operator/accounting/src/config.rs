//! The configuration: a file, and what it means.
//!
//! The [file](mod@file) is read once and strictly, as that of the operator is: an unknown field, a field given twice or a
//! value out of range is an error that names the field. Two commands have flags beside it.

use std::{net::SocketAddr, ops::RangeInclusive, time::Duration};

use trainjob_accounting_core::settings;
use trainjob_process::{
    config::{
        ConfigError, Flags, LeaderElection, MetricsServer, Problem, Served, Settings, Tls,
        companion, read,
    },
    health::Endpoints,
};

use self::file::Configuration;

pub mod file;

/// The bounds of `holdLimit`.
const HOLD_LIMIT: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_hours(24);
/// How many labels may be copied.
const MOST_LABELS: usize = 16;

/// What the program uses, complete and valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How one of several replicas is chosen to work, the default; `None`: whoever runs works.
    pub leader_election: Option<LeaderElection>,
    /// The namespace and the name of the Lease, whether or not somebody is elected. No namespace: that of the process.
    pub lease: (Option<String>, String),
    /// What decisions depend on.
    pub settings: settings::Settings,
    /// Labels of the TrainJob that its record gets.
    pub copy_labels: Vec<String>,
    /// How many requests are under way at the same time; 64 by default.
    pub concurrency: usize,
    /// How many namespaces metrics tell apart; `None`: they do not.
    pub namespaces_shown: Option<usize>,
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
    let election = election(&file.leader_election);
    let metrics = &file.metrics;
    companion::check(election.as_ref(), metrics.secure_serving, &metrics.auth, &file.health)?;
    let limit = file.accounting.hold_limit.0;
    if !limit.is_zero() && !HOLD_LIMIT.contains(&limit) {
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
    let Configuration { leader_election, metrics, health, accounting, .. } = file;
    let limit = accounting.hold_limit.0;
    let warnings = if leader_election.leader_elect {
        Vec::new()
    } else {
        vec!["leaderElection.leaderElect: false, so the operator marks no Pod".to_owned()]
    };
    let namespace = Some(leader_election.resource_namespace.clone());
    Config {
        lease: (namespace.filter(|name| !name.is_empty()), leader_election.resource_name.clone()),
        leader_election: election(&leader_election),
        settings: settings::Settings {
            gpu_resources: accounting.gpu_resources,
            batch_period: accounting.batch_period.get(),
            hold_limit: (!limit.is_zero()).then_some(limit),
            failure_messages: accounting.failure_messages,
        },
        copy_labels: accounting.copy_labels,
        concurrency: size(accounting.concurrency.get()),
        namespaces_shown: metrics.by_namespace.then(|| size(metrics.max_namespaces.get())),
        health: health.health_probe_bind_address.get(),
        endpoints: companion::endpoints(&health),
        metrics: companion::metrics_server(
            metrics.bind_address,
            metrics.secure_serving,
            &metrics.auth,
        ),
        tls: Tls::default(),
        warnings,
    }
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn election(section: &file::LeaderElection) -> Option<LeaderElection> {
    let times = [section.lease_duration, section.renew_deadline, section.retry_period];
    let (name, namespace) = (&section.resource_name, &section.resource_namespace);
    companion::election(section.leader_elect, times, name, namespace)
}

#[cfg(test)]
mod tests;
