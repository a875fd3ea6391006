//! Which framework a runtime asks for. A new one is a file and a line in [`enforce`].

use trainjob_api::runtime::{MlPolicy, PodGroupPolicy};

use super::{BuildError, Runtime, draft::Draft, flux, mpi, plainml, torch};

/// Lets the framework of the runtime write what it needs into the draft.
///
/// What is not implemented is refused rather than built without.
pub(super) fn enforce(draft: &mut Draft<'_>, runtime: &Runtime) -> Result<(), BuildError> {
    match runtime.spec.pod_group_policy {
        Some(PodGroupPolicy { coscheduling: Some(_), .. }) => {
            return unsupported("podGroupPolicy.coscheduling", WITHOUT_GANG);
        }
        Some(PodGroupPolicy { volcano: Some(_), .. }) => {
            return unsupported("podGroupPolicy.volcano", WITHOUT_GANG);
        }
        _ => {}
    }
    match &runtime.spec.ml_policy {
        Some(MlPolicy { mpi: Some(policy), .. }) => mpi::enforce(draft, policy),
        Some(MlPolicy { jax: Some(_), .. }) => unsupported("mlPolicy.jax", OTHER_FRAMEWORK),
        Some(MlPolicy { xgboost: Some(_), .. }) => unsupported("mlPolicy.xgboost", OTHER_FRAMEWORK),
        Some(MlPolicy { flux: Some(policy), .. }) => flux::enforce(draft, policy),
        Some(MlPolicy { torch: Some(policy), .. }) => torch::enforce(draft, policy),
        _ => {
            plainml::enforce(draft);
            Ok(())
        }
    }
}

const OTHER_FRAMEWORK: &str =
    "use a runtime with mlPolicy.torch, or with no framework policy at all";
const WITHOUT_GANG: &str = "use a runtime without podGroupPolicy, or queue the job with Kueue";

const fn unsupported(field: &'static str, advice: &'static str) -> Result<(), BuildError> {
    Err(BuildError::UnsupportedPolicy { field, advice })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        build,
        testing::{job, runtime},
    };

    #[test]
    fn what_is_not_implemented_is_refused_by_name() {
        for (field, spec) in [
            ("mlPolicy.jax", json!({"mlPolicy": {"jax": {}}})),
            ("mlPolicy.xgboost", json!({"mlPolicy": {"xgboost": {}}})),
            ("mlPolicy.jax", json!({"mlPolicy": {"jax": {}, "torch": {}}})),
            ("podGroupPolicy.coscheduling", json!({"podGroupPolicy": {"coscheduling": {}}})),
            ("podGroupPolicy.volcano", json!({"podGroupPolicy": {"volcano": {}}})),
        ] {
            let error = build(&job(&json!({})), &runtime(&spec)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{field} is not supported")), "{error}");
        }
    }

    #[test]
    fn a_policy_that_asks_for_nothing_is_plain() {
        for spec in [
            json!({}),
            json!({"mlPolicy": {}}),
            json!({"mlPolicy": {"numNodes": 2}}),
            json!({"podGroupPolicy": {}}),
        ] {
            assert!(build(&job(&json!({})), &runtime(&spec)).is_ok(), "{spec}");
        }
    }
}
