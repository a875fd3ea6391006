//! What the fields of a file say together: rules between them, and what deserves a warning.

use std::time::Duration;

use super::{
    OTHER_KINDS, TRAIN_JOB,
    error::Problem,
    file::{Configuration, LeaderElection, Metrics},
    health_endpoints, rate_limit,
    value::GoDuration,
};

/// Refuses fields that contradict each other.
pub(super) fn check(file: &Configuration) -> Result<(), Problem> {
    file.leader_election.as_ref().map_or(Ok(()), check_leader_election)?;
    file.metrics.as_ref().map_or(Ok(()), check_metrics)?;
    let endpoints = health_endpoints(file.health.as_ref());
    if endpoints.ready == endpoints.live {
        let message = format!(
            "`{}` is the name of the liveness endpoint, expected another",
            endpoints.ready.trim_start_matches('/')
        );
        return Err(Problem::new("health.readinessEndpointName", message));
    }
    Ok(())
}

fn check_leader_election(election: &LeaderElection) -> Result<(), Problem> {
    if election.leader_elect != Some(true) {
        return Ok(());
    }
    let given = |field: Option<GoDuration>, default| {
        field.map_or(Duration::from_secs(default), |duration| duration.0)
    };
    let lease = given(election.lease_duration, 15);
    let renew = given(election.renew_deadline, 10);
    let retry = given(election.retry_period, 2);
    if retry.is_zero() {
        let message = "invalid value: 0, expected more than that";
        return Err(Problem::new("leaderElection.retryPeriod", message));
    }
    if renew >= lease {
        let message = format!("{renew:?} is too long, expected less than leaseDuration ({lease:?})");
        return Err(Problem::new("leaderElection.renewDeadline", message));
    }
    // As client-go has it: a period varies by up to a fifth, and one attempt has to fit.
    if retry.mul_f64(1.2) >= renew {
        let message =
            format!("{retry:?} is too long, expected less than 5/6 of renewDeadline ({renew:?})");
        return Err(Problem::new("leaderElection.retryPeriod", message));
    }
    Ok(())
}

fn check_metrics(metrics: &Metrics) -> Result<(), Problem> {
    let authenticated = metrics.auth.as_ref().and_then(|auth| auth.enabled) == Some(true);
    if authenticated && metrics.secure_serving == Some(false) {
        let message = "true, but metrics.secureServing is false and tokens would be readable on the \
                       way, expected both true or this one false";
        return Err(Problem::new("metrics.auth.enabled", message));
    }
    Ok(())
}

/// What to tell whoever runs the operator, once.
pub(super) fn warnings(file: &Configuration) -> Vec<String> {
    let mut warnings = Vec::new();
    let without_effect = without_effect(file);
    if !without_effect.is_empty() {
        let names = without_effect.join(", ");
        warnings.push(format!("{names}: read and checked, but without effect in this release"));
    }
    if file.leader_election.as_ref().and_then(|election| election.leader_elect) == Some(true) {
        warnings.push(
            "leaderElection: this release does not elect a leader yet, run exactly one replica"
                .to_owned(),
        );
    }
    let limit = file.client_connection.as_ref().and_then(rate_limit);
    if let Some(limit) = limit.filter(|limit| limit.per_second == 50.0 && limit.burst.get() == 100)
    {
        
    }
    warnings
}
