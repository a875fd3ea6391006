//! Initializers: a TrainJob that wants something fetched needs a runtime that can.
//!
//! The runtime's job for it is the one of the initializer's name or, failing that, the one with its
//! label. (Kubeflow Trainer asks for the name, although it is the label that it goes by when it builds.)
//!
//! The value that an error shows is the one at its path, `spec.runtimeRef`: that is what does not go with
//! the initializers.

use trainjob_api::{
    TrainJob,
    constants::{DATASET_INITIALIZER, MODEL_INITIALIZER},
    jobset::ReplicatedJob,
};

use super::field::FieldError;
use crate::build::{
    draft::Draft,
    replicated_job::{ancestor, container, init_container},
};

/// Name of the volume through which what was fetched reaches the trainer's replicated job.
const VOLUME: &str = "initializer";

/// What the patched template lacks for the job's initializers.
pub(super) fn check(job: &TrainJob, draft: &Draft<'_>) -> Vec<FieldError> {
    let initializer = job.spec.initializer.as_ref();
    let dataset = initializer.and_then(|initializer| initializer.dataset.as_ref());
    let model = initializer.and_then(|initializer| initializer.model.as_ref());
    let wanted = [
        dataset.map(|_| (DATASET_INITIALIZER, "datasetConfig")),
        model.map(|_| (MODEL_INITIALIZER, "modelConfig")),
    ];
    let replicated_jobs = draft.spec.replicated_jobs.as_deref().unwrap_or_default();
    let problems = wanted
        .into_iter()
        .flatten()
        .filter_map(|(name, input)| problem(replicated_jobs, name, input));
    problems.map(|it| FieldError::invalid("spec.runtimeRef", &job.spec.runtime_ref, it)).collect()
}

fn problem(replicated_jobs: &[ReplicatedJob], name: &str, input: &str) -> Option<String> {
    let by_name = replicated_jobs.iter().find(|replicated_job| replicated_job.name == name);
    let Some(replicated_job) = by_name.or_else(|| {
        replicated_jobs.iter().find(|replicated_job| ancestor(replicated_job) == Some(name))
    }) else {
        return Some(format!(
            "must have {name} job when trainJob is configured with input {input}"
        ));
    };
    let Some(container) = container(replicated_job, name) else {
        return init_container(replicated_job, name)
            .is_none()
            .then(|| format!("must have container with name - {name} in the {name} job"));
    };
    let mut mounts = container.volume_mounts.iter().flatten();
    (!mounts.any(|mount| mount.name == VOLUME)).then(|| {
        format!("must have volumeMount with name - {VOLUME} in container {name} of the {name} job")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::testing;

    fn found(initializer: &Value, replicated_job: &Value) -> Vec<String> {
        let job = testing::job(&json!({"initializer": initializer}));
        let runtime = testing::with(&json!({}), &json!([replicated_job, testing::node()]));
        testing::found(&job, &runtime, |draft| check(&job, draft))
    }

    /// A replicated job of this name and label, whose container has this name and mounts these volumes.
    fn replicated_job(
        name: &str,
        ancestor: Option<&str>,
        container: &str,
        mounts: &Value,
    ) -> Value {
        let container = json!({"name": container, "volumeMounts": mounts});
        testing::replicated_job(name, ancestor, &json!({"containers": [container]}))
    }

    #[test]
    fn initializer_needs_its_replicated_job_container_and_volume() {
        let mounts = json!([{"name": "initializer", "mountPath": "/workspace"}]);
        for (field, name, input) in [
            ("dataset", "dataset-initializer", "datasetConfig"),
            ("model", "model-initializer", "modelConfig"),
        ] {
            let no_job =
                format!("must have {name} job when trainJob is configured with input {input}");
            let no_container = format!("must have container with name - {name} in the {name} job");
            let no_mount = format!(
                "must have volumeMount with name - initializer in container {name} of the {name} job"
            );
            let init = json!({"containers": [], "initContainers": [{"name": name}]});
            for (what, replicated_job, expected) in [
                ("right", replicated_job(name, Some(name), name, &mounts), None),
                ("by name", replicated_job(name, None, name, &mounts), None),
                ("by label", replicated_job("fetch", Some(name), name, &mounts), None),
                ("as an init container", testing::replicated_job(name, None, &init), None),
                ("no job", replicated_job("fetch", None, name, &mounts), Some(no_job)),
                ("no container", replicated_job(name, None, "main", &mounts), Some(no_container)),
                ("no mount", replicated_job(name, None, name, &json!([])), Some(no_mount)),
            ] {
                let expected = expected.map(|it| {
                    let reference = r#"{"name":"torch-distributed"}"#;
                    format!("spec.runtimeRef: Invalid value: {reference}: {it}")
                });
                let found = found(&json!({field: {}}), &replicated_job);
                assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{name}: {what}");
            }
        }
    }

    #[test]
    fn a_job_without_initializers_needs_none() {
        for initializer in [json!(null), json!({})] {
            assert_eq!(found(&initializer, &testing::node()), [""; 0]);
        }
    }
}
