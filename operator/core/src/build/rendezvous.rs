//! Where the processes of the trainer's replicated job meet, and how each is told which one it is.
//!
//! Every framework has its own variables for the same three things:
//!
//! | what | value |
//! |---|---|
//! | who takes part | container `node` of the trainer's replicated job, if the TrainJob has `spec.trainer` |
//! | where they meet | the first Pod of the replicated job, port 29500 |
//! | which one a Pod is | its index in its Job |
//!
//! Without `spec.trainer` nobody takes part; an empty one is enough. That is Kubeflow Trainer's rule.

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector};
use trainjob_api::{
    constants::{COMPLETION_INDEX_FIELD, NODE, TRAINER_PORT},
    v1alpha1::train_job::Trainer,
};

use super::{draft::Draft, replicated_job::container_mut};

/// The container that takes part, and what the TrainJob says of it.
pub(crate) fn participant<'d, 'a>(
    draft: &'d mut Draft<'a>,
) -> Option<(&'d mut Container, &'a Trainer)> {
    let trainer = draft.job.spec.trainer.as_ref()?;
    let node = container_mut(draft.trainer_mut()?, NODE)?;
    Some((node, trainer))
}

/// The host they meet at: the name that JobSet gives to the first Pod of the trainer's replicated job.
///
/// Kubeflow Trainer always says `<job>-node-0-0.<job>`; a template whose replicated job or sub-domain is called
/// otherwise could not work with that.
pub(crate) fn host(draft: &Draft<'_>) -> String {
    let name = draft.job.metadata.name.as_deref().unwrap_or_default();
    let replicated_job = draft.trainer().map_or(NODE, |replicated_job| &replicated_job.name);
    let network = draft.spec.network.as_ref();
    let subdomain = network.and_then(|n| n.subdomain.as_deref()).filter(|s| !s.is_empty());
    format!("{name}-{replicated_job}-0-0.{}", subdomain.unwrap_or(name))
}

/// Host and port they meet at.
pub(crate) fn endpoint(draft: &Draft<'_>) -> String {
    format!("{}:{TRAINER_PORT}", host(draft))
}

/// A variable with a plain value.
pub(crate) fn variable(name: &str, value: String) -> EnvVar {
    EnvVar { name: name.into(), value: Some(value), ..EnvVar::default() }
}

/// A variable that tells a Pod which one it is.
pub(crate) fn index(name: &str) -> EnvVar {
    let field_ref = ObjectFieldSelector {
        field_path: COMPLETION_INDEX_FIELD.into(),
        ..ObjectFieldSelector::default()
    };
    EnvVar {
        name: name.into(),
        value_from: Some(EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() }),
        ..EnvVar::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{built, container, job, replicated_job, runtime, variable};

    #[test]
    fn processes_meet_at_the_first_pod_of_the_trainer_replicated_job() {
        for (name, network, expected) in [
            ("node", json!({}), "tj-node-0-0.tj"),
            ("worker", json!({}), "tj-worker-0-0.tj"),
            ("node", json!({"subdomain": "net"}), "tj-node-0-0.net"),
            ("node", json!({"subdomain": ""}), "tj-node-0-0.tj"),
        ] {
            for (policy, address, port) in [
                ("torch", "PET_MASTER_ADDR", ""),
                ("jax", "JAX_COORDINATOR_ADDRESS", ":29500"),
                ("xgboost", "DMLC_TRACKER_URI", ""),
            ] {
                let replicated_job =
                    replicated_job(name, Some("trainer"), &json!([{"name": "node"}]));
                let runtime = runtime(&json!({
                    "mlPolicy": {policy: {}},
                    "template": {"spec": {"network": network, "replicatedJobs": [replicated_job]}},
                }));
                let job_set = built(&job(&json!({"trainer": {}})), &runtime);
                let node = job_set.pointer(&container(0)).unwrap();
                assert_eq!(variable(node, address).unwrap(), format!("{expected}{port}"));
            }
        }
    }
}
