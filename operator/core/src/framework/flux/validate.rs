//! Flux: the init container that installs it is the operator's.

use trainjob_api::constants::NODE;

use super::INSTALLER;
use crate::admission::field::FieldError;
use crate::build::{draft::Draft, replicated_job::init_container};

/// What is wrong with a job on a Flux runtime.
pub(crate) fn check(draft: &Draft<'_>) -> Option<FieldError> {
    let mut replicated_jobs = draft.spec.replicated_jobs.iter().flatten();
    let node = replicated_jobs.find(|replicated_job| replicated_job.name == NODE)?;
    init_container(node, INSTALLER)?;
    let detail = format!("InitContainer '{INSTALLER}' is reserved");
    Some(FieldError::invalid("spec.trainer.initContainers", INSTALLER, detail))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::testing;

    #[test]
    fn the_installer_is_reserved() {
        const TAKEN: &str = "spec.trainer.initContainers: Invalid value: \"flux-installer\": InitContainer 'flux-installer' is reserved";
        for (replicated_job, container, expected) in [
            ("node", "flux-installer", vec![TAKEN]),
            ("node", "prepare", vec![]),
            ("other", "flux-installer", vec![]),
        ] {
            let pod = json!({"containers": [], "initContainers": [{"name": container}]});
            let replicated_jobs = json!([testing::replicated_job(replicated_job, None, &pod)]);
            let runtime = testing::with(&json!({"flux": {}}), &replicated_jobs);
            let check = |draft: &Draft<'_>| check(draft).into_iter().collect();
            assert_eq!(testing::found(&testing::job(&json!({})), &runtime, check), expected);
        }
    }

    #[test]
    fn a_patch_must_not_bring_it_in_either() {
        let job = testing::job(
            &json!({"runtimePatches": [{"manager": "a/b", "trainingRuntimeSpec": {
                "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {
                    "spec": {"initContainers": [{"name": "flux-installer"}]},
                }}}}]}},
            }}]}),
        );
        let runtime = testing::with(&json!({"flux": {}}), &json!([testing::node()]));
        let check = |draft: &Draft<'_>| check(draft).into_iter().collect();
        assert_eq!(testing::found(&job, &runtime, check).len(), 1);
    }
}
