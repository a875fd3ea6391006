//! PyTorch: its launcher's variables are the operator's, and the containers that also get them exist.

use trainjob_api::{TrainJob, v1alpha1::runtime::TorchPolicy};

use super::torchtune::validate as torchtune;
use crate::admission::{field::FieldError, reserved};
use crate::build::{
    draft::Draft,
    replicated_job::{container, init_container},
};

const RESERVED: [&str; 5] =
    ["PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"];

/// What is wrong with a job on a PyTorch runtime.
pub(crate) fn check(job: &TrainJob, draft: &Draft<'_>, policy: &TorchPolicy) -> Vec<FieldError> {
    let mut errors = targets(draft, policy);
    errors.extend(reserved::check(job, &RESERVED));
    errors.extend(job.spec.trainer.iter().flat_map(|it| torchtune::check(job, draft, it)));
    errors
}

/// The injection targets that are not there.
fn targets(draft: &Draft<'_>, policy: &TorchPolicy) -> Vec<FieldError> {
    let replicated_jobs = draft.spec.replicated_jobs.as_deref().unwrap_or_default();
    let exists = |replicated_job: &str, name: &str| {
        let replicated_job = replicated_jobs.iter().find(|known| known.name == replicated_job);
        replicated_job
            .is_some_and(|it| container(it, name).or_else(|| init_container(it, name)).is_some())
    };
    let mut errors = Vec::new();
    for target in policy.env_injection.iter().flat_map(|it| it.targets.iter().flatten()) {
        let replicated_job = &target.job_name;
        for name in target.container_names.iter().filter(|name| !exists(replicated_job, name)) {
            let detail = format!(
                "envInjection target podSet {replicated_job:?} container {name:?} not found in runtime template"
            );
            errors.push(FieldError::invalid("spec.runtimeRef", target, detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::testing;

    fn found(trainer: &Value, targets: &Value) -> Vec<String> {
        let job = testing::job(&json!({"trainer": trainer}));
        let pod = json!({
            "initContainers": [{"name": "prepare"}],
            "containers": [{"name": "node"}, {"name": "sidecar"}],
        });
        let policy = json!({"torch": {"envInjection": {"targets": targets}}});
        let replicated_jobs = json!([testing::replicated_job("node", Some("trainer"), &pod)]);
        let runtime = testing::with(&policy, &replicated_jobs);
        let policy = runtime.spec.ml_policy.as_ref().unwrap().torch.as_ref().unwrap();
        testing::found(&job, &runtime, |draft| check(&job, draft, policy))
    }

    #[test]
    fn an_injection_target_exists() {
        for (replicated_job, container, is_there) in [
            ("node", "sidecar", true),
            ("node", "prepare", true),
            ("node", "other", false),
            ("other", "sidecar", false),
        ] {
            let targets = json!([{"jobName": replicated_job, "containerNames": [container]}]);
            let expected = format!(
                "spec.runtimeRef: Invalid value: {{\"jobName\":\"{replicated_job}\",\"containerNames\":[\"{container}\"]}}: \
                 envInjection target podSet \"{replicated_job}\" container \"{container}\" not found in runtime template"
            );
            let expected = if is_there { vec![] } else { vec![expected] };
            assert_eq!(found(&json!({}), &targets), expected);
        }
    }

    #[test]
    fn the_variables_of_the_launcher_are_reserved() {
        for name in RESERVED {
            let env = json!([{"name": "A", "value": "1"}, {"name": name}]);
            let expected = format!(
                r#"spec.trainer.env: Invalid value: [{{"name":"A","value":"1"}},{{"name":"{name}"}}]: must not have reserved envs, invalid envs configured: [{name}]"#
            );
            assert_eq!(found(&json!({"env": env}), &json!([])), [expected]);
        }
        let env = json!([{"name": "PET_NODE_RANK"}, {"name": "PET_NNODES"}]);
        let both = found(&json!({"env": env}), &json!([]));
        assert!(both[0].ends_with("configured: [PET_NNODES PET_NODE_RANK]"), "{both:?}");
        assert_eq!(found(&json!({"env": [{"name": "PET_OTHER"}]}), &json!([])), [""; 0]);
    }
}
