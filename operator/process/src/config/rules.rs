//! What the fields of a file say together: rules between them, and what deserves a warning.

use super::{
    admission, election,
    error::Problem,
    file::{ClientConnection, Configuration, Metrics, TRAIN_JOB},
    health_endpoints, rate_limit, tls,
};

/// The kinds that Trainer counts too, and that have no workers of their own here.
const OTHER_KINDS: [&str; 2] =
    ["TrainingRuntime.trainer.kubeflow.org", "ClusterTrainingRuntime.trainer.kubeflow.org"];

/// Refuses fields that contradict each other.
pub(super) fn check(file: &Configuration) -> Result<(), Problem> {
    election::check(&file.leader_election)?;
    check_metrics(&file.metrics)?;
    admission::check(file)?;
    let endpoints = health_endpoints(&file.health);
    if endpoints.ready == endpoints.live {
        let name = endpoints.ready.trim_start_matches('/');
        let message = format!("`{name}` is the liveness endpoint, expected another name");
        return Err(Problem::new("health.readinessEndpointName", message));
    }
    Ok(())
}

/// Tokens are not sent over a connection that anybody can read.
fn check_metrics(metrics: &Metrics) -> Result<(), Problem> {
    if metrics.auth.asks(metrics.secure_serving) && !metrics.secure_serving {
        let message = "true, but metrics.secureServing is false, expected both true or this false";
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
    let limit = file.client_connection.as_ref().map(rate_limit);
    if limit == Some(rate_limit(&ClientConnection::default())) {
        let advice = "the operator's requests are limited to Trainer's 50 a second, with bursts of 100; \
                      without this section there is no limit";
        warnings.push(format!("clientConnection: {advice}"));
    }
    warnings.extend(tls::resolve(&file.tls).1);
    for kind in file.controller.group_kind_concurrency.keys() {
        if kind != TRAIN_JOB && !OTHER_KINDS.contains(&kind.as_str()) {
            let advice = format!("unknown kind, ignored; the one that counts is {TRAIN_JOB}");
            warnings.push(format!("controller.groupKindConcurrency[{kind:?}]: {advice}"));
        }
    }
    warnings
}

/// What the file sets and this release does not use.
fn without_effect(file: &Configuration) -> Vec<&'static str> {
    [("statusServer", file.status_server.is_some())]
        .into_iter()
        .filter_map(|(name, set)| set.then_some(name))
        .collect()
}
