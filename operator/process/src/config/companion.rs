//! What the sections mean that the programs beside the operator have in files of their own.

use trainjob_core::lease::Times;

use super::{
    MetricsServer,
    election::{LeaderElection, check_times},
    error::Problem,
    file::{Health, MetricsAuth},
    value::{BindAddress, GoDuration},
};
use crate::health::Endpoints;

/// The election that a file asks for, if it does. The three times are `leaseDuration`, `renewDeadline` and `retryPeriod`.
#[must_use]
pub fn election(
    is_elected: bool,
    [lease, renew, retry]: [GoDuration; 3],
    name: &str,
    namespace: &str,
) -> Option<LeaderElection> {
    is_elected.then(|| LeaderElection {
        times: Times { lease_duration: lease.0, renew_deadline: renew.0, retry_period: retry.0 },
        name: name.to_owned(),
        namespace: Some(namespace.to_owned()).filter(|name| !name.is_empty()),
    })
}

impl MetricsAuth {
    /// Whether readers of metrics are authorized, which are served over TLS or not.
    pub(super) const fn asks(&self, secure_serving: bool) -> bool {
        match self.enabled {
            Some(enabled) => enabled,
            None => secure_serving,
        }
    }
}

/// How metrics are served.
#[must_use]
pub fn metrics_server(bind: BindAddress, tls: bool, auth: &MetricsAuth) -> Option<MetricsServer> {
    Some(MetricsServer { address: bind.get()?, tls, auth: auth.asks(tls) })
}

/// The paths of health.
#[must_use]
pub fn endpoints(health: &Health) -> Endpoints {
    Endpoints {
        ready: format!("/{}", health.readiness_endpoint_name.0),
        live: format!("/{}", health.liveness_endpoint_name.0),
    }
}

/// Refuses fields of these sections that contradict each other.
///
/// # Errors
///
/// Which field does.
pub fn check(
    election: Option<&LeaderElection>,
    secure_serving: bool,
    auth: &MetricsAuth,
    health: &Health,
) -> Result<(), Problem> {
    if let Some(election) = election {
        check_times(election.times)?;
    }
    if auth.asks(secure_serving) && !secure_serving {
        let message = "true, but metrics.secureServing is false, expected both true or this false";
        return Err(Problem::new("metrics.auth.enabled", message));
    }
    let endpoints = endpoints(health);
    if endpoints.ready == endpoints.live {
        let message = format!("`{}` is the liveness endpoint, expected another", endpoints.ready);
        return Err(Problem::new("health.readinessEndpointName", message));
    }
    Ok(())
}
