//! Which framework a runtime asks for. A new one is a file and a line in [`enforce`].

use trainjob_api::runtime::MlPolicy;

use super::{BuildError, Runtime, draft::Draft, flux, jax, mpi, plainml, torch, xgboost};

/// Lets the framework of the runtime write what it needs into the draft.
pub(super) fn enforce(draft: &mut Draft<'_>, runtime: &Runtime) -> Result<(), BuildError> {
    match &runtime.spec.ml_policy {
        Some(MlPolicy { mpi: Some(policy), .. }) => mpi::enforce(draft, policy),
        Some(MlPolicy { flux: Some(policy), .. }) => flux::enforce(draft, policy),
        Some(MlPolicy { jax: Some(_), .. }) => {
            jax::enforce(draft);
            Ok(())
        }
        Some(MlPolicy { xgboost: Some(_), .. }) => xgboost::enforce(draft),
        Some(MlPolicy { torch: Some(policy), .. }) => torch::enforce(draft, policy),
        _ => {
            plainml::enforce(draft);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        build,
        testing::{job, runtime},
    };

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
