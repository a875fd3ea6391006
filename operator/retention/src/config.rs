//! The configuration: a file, and what it means.
//!
//! The [file](mod@file) is read once and strictly, as that of the operator is: an unknown field, a field given twice or a
//! value out of range is an error that names the field.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use trainjob_process::{
    config::{
        ConfigError, Flags, LeaderElection, MetricsServer, Problem, Served, Settings, Tls,
        companion, read,
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
    let election = election(&file.leader_election);
    let metrics = &file.metrics;
    companion::check(election.as_ref(), metrics.secure_serving, &metrics.auth, &file.health)?;
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
        leader_election: election(&leader_election),
        targets: retention.targets,
        deletes_per_second: (per_second > 0.0).then_some(per_second),
        concurrency: usize::try_from(retention.concurrency.get()).unwrap_or(usize::MAX),
        excluded_namespaces: system.chain(excluded).collect(),
        clock_jump_pause: Duration::from_secs(retention.clock_jump_pause_seconds.get().into()),
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

fn election(section: &file::LeaderElection) -> Option<LeaderElection> {
    let times = [section.lease_duration, section.renew_deadline, section.retry_period];
    let (name, namespace) = (&section.resource_name, &section.resource_namespace);
    companion::election(section.leader_elect, times, name, namespace)
}

#[cfg(test)]
mod tests;
