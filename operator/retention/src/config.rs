//! The configuration: a file, and what it means.
//!
//! The [file](mod@file) is read once and strictly, as that of the operator is: an unknown field, a field given twice or a
//! value out of range is an error that names the field.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use trainjob_core::lease::Times;
use trainjob_process::{
    config::{
        ConfigError, Flags, LeaderElection, MetricsServer, Problem, Served, Settings, Tls,
        check_times, read,
    },
    health::Endpoints,
};
use trainjob_retention_core::policy::SYSTEM_NAMESPACES;

use self::file::Configuration;
pub use self::file::Target;

pub mod file;

/// What the program uses, complete and valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How one of several replicas is chosen to work; `None`, the default: whoever runs works.
    pub leader_election: Option<LeaderElection>,
    /// The kinds that policies may be about. No kind is there twice.
    pub targets: Vec<Target>,
    /// How many objects are deleted a second; `None`: no limit. 50 by default.
    pub deletes_per_second: Option<f64>,
    /// How many requests are under way at the same time; 32 by default.
    pub concurrency: usize,
    /// The namespaces that a policy of the cluster has to name. That of the process is one of them, and is not here.
    pub excluded_namespaces: BTreeSet<Arc<str>>,
    clock_jump_pause: Duration,
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
        self.clock_jump_pause
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
    let mut kinds = BTreeSet::new();
    for (index, target) in file.retention.targets.iter().enumerate() {
        let problem = |field: &str, message: String| {
            Err(Problem::new(format!("retention.targets[{index}].{field}"), message))
        };
        if target.api_group.is_empty() && target.kind != "Pod" {
            let message = format!("`{}` of the core group, expected Pod", target.kind);
            return problem("kind", message);
        }
        if !is_plural(&target.resource) {
            let message = format!("{:?}, expected a plural name such as jobs", target.resource);
            return problem("resource", message);
        }
        if !kinds.insert((&target.api_group, &target.kind)) {
            return problem("kind", format!("`{}` is there already, expected once", target.kind));
        }
    }
    Ok(())
}

/// Whether this can be the plural name of a kind, and no more than one segment of a path.
fn is_plural(name: &str) -> bool {
    let is_in_names = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(is_in_names)
}

/// What a file that has been checked means.
fn resolve(file: Configuration) -> Config {
    let endpoints = endpoints(&file);
    let Configuration { leader_election, metrics, health, retention, .. } = file;
    let warnings = if retention.targets.is_empty() {
        vec!["retention.targets: empty, so no policy does anything".to_owned()]
    } else {
        Vec::new()
    };
    let system = SYSTEM_NAMESPACES.map(Arc::from).into_iter();
    let excluded = retention.excluded_namespaces.into_iter().map(Arc::from);
    let per_second = retention.deletes_per_second.get();
    Config {
        leader_election: leader_election.leader_elect.then(|| election(&leader_election)),
        targets: retention.targets,
        deletes_per_second: (per_second > 0.0).then_some(per_second),
        concurrency: usize::try_from(retention.concurrency.get()).unwrap_or(usize::MAX),
        excluded_namespaces: system.chain(excluded).collect(),
        clock_jump_pause: Duration::from_secs(retention.clock_jump_pause_seconds.get().into()),
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

#[cfg(test)]
mod tests;
