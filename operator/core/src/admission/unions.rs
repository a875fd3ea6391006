//! Unions: a volume has one source, and a variable either a value or a source for it.
//!
//! A patch is laid over what the runtime has, field by field, so where both name the same volume or
//! variable with another source, it ends with two. Kubernetes makes no Pod of that, and says so only when
//! a Job tries to; here it is said at once. (Kubeflow Trainer admits it.)

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, Volume};
use serde_json::Value;
use trainjob_api::{
    TrainJob,
    jobset::ReplicatedJob,
    v1alpha1::patches::{ContainerPatch, ReplicatedJobPatch},
};

use super::{
    field::FieldError,
    patches::{entries, path_of, pod, replicated_jobs},
};
use crate::build::draft::Draft;

/// The variables and volumes that the job's patches leave with several sources.
pub(super) fn check(job: &TrainJob, draft: &Draft<'_>) -> Vec<FieldError> {
    let patched = draft.spec.replicated_jobs.iter().flatten();
    let patched: HashMap<_, _> =
        patched.map(|replicated_job| (replicated_job.name.as_str(), replicated_job)).collect();
    let mut errors = Vec::new();
    for (index, entry) in entries(job).iter().enumerate() {
        for patch in replicated_jobs(entry) {
            let Some(replicated_job) = patched.get(patch.name.as_str()) else { continue };
            let problems =
                volumes(patch, replicated_job).into_iter().chain(variables(patch, replicated_job));
            errors.extend(problems.map(|(name, members, what)| {
                let detail = format!(
                    "{what} of the runtime job {} would have {members}: a patch adds to what the runtime has, \
                     use another name",
                    replicated_job.name,
                );
                FieldError::invalid(path_of(index), name, detail)
            }));
        }
    }
    errors
}

/// The name of what has several sources, these, and what it is.
type Problem<'a> = (&'a str, String, String);

fn volumes<'p>(patch: &'p ReplicatedJobPatch, replicated_job: &ReplicatedJob) -> Vec<Problem<'p>> {
    let touched = pod(patch).and_then(|pod| pod.volumes.as_deref()).unwrap_or_default();
    if touched.is_empty() {
        return Vec::new();
    }
    let pod = replicated_job.template.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let volumes = pod.into_iter().flat_map(|pod| pod.volumes.iter().flatten());
    let volumes: HashMap<_, _> = volumes.map(|volume| (volume.name.as_str(), volume)).collect();
    let several = |name: &'p str| {
        let sources = sources(volumes.get(name)?);
        (sources.len() > 1).then(|| (name, sources.join(" and "), "the volume".to_owned()))
    };
    touched.iter().filter_map(|volume| several(&volume.name)).collect()
}

/// The fields that say where a volume comes from: all but its name.
fn sources(volume: &Volume) -> Vec<String> {
    let fields = serde_json::to_value(volume).unwrap_or_default();
    let fields = fields.as_object().into_iter().flatten();
    let set = fields.filter(|(field, value)| *field != "name" && **value != Value::Null);
    set.map(|(field, _)| field.clone()).collect()
}

fn variables<'p>(
    patch: &'p ReplicatedJobPatch,
    replicated_job: &ReplicatedJob,
) -> Vec<Problem<'p>> {
    let of_replicated_job =
        replicated_job.template.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let (Some(patch), Some(pod)) = (pod(patch), of_replicated_job) else { return Vec::new() };
    let lists = [
        (patch.containers.as_deref(), Some(pod.containers.as_slice())),
        (patch.init_containers.as_deref(), pod.init_containers.as_deref()),
    ];
    let both =
        lists.into_iter().map(|(patch, it)| (patch.unwrap_or_default(), it.unwrap_or_default()));
    both.flat_map(|(patches, containers)| of_containers(patches, containers)).collect()
}

fn of_containers<'p>(patches: &'p [ContainerPatch], containers: &[Container]) -> Vec<Problem<'p>> {
    let with_env =
        patches.iter().filter(|patch| patch.env.as_ref().is_some_and(|it| !it.is_empty()));
    let mut problems = Vec::new();
    let mut known = None;
    for patch in with_env {
        let known = known.get_or_insert_with(|| {
            containers.iter().map(|it| (it.name.as_str(), it)).collect::<HashMap<_, _>>()
        });
        let Some(container) = known.get(patch.name.as_str()) else { continue };
        let env = container.env.iter().flatten();
        let env: HashMap<_, _> = env.map(|variable| (variable.name.as_str(), variable)).collect();
        let several = |name: &'p str| {
            let members = members(env.get(name)?);
            let what = format!("the variable in container {}", patch.name);
            (members.len() > 1).then(|| (name, members.join(" and "), what))
        };
        let touched = patch.env.iter().flatten();
        problems.extend(touched.filter_map(|variable| several(&variable.name)));
    }
    problems
}

/// The fields that say what a variable's value is.
fn members(variable: &EnvVar) -> Vec<String> {
    let value = variable.value.as_ref().filter(|value| !value.is_empty());
    let sources = serde_json::to_value(&variable.value_from).unwrap_or_default();
    let sources = sources.as_object().into_iter().flatten();
    let sources = sources.filter(|(_, source)| **source != Value::Null);
    let sources = sources.map(|(field, _)| format!("valueFrom.{field}"));
    value.map(|_| "value".to_owned()).into_iter().chain(sources).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::testing;

    const FIELD: &str = "valueFrom";

    fn found(pod: &Value) -> Vec<String> {
        let job = testing::job(&json!({"runtimePatches": [
            {"manager": "a.io/a"},
            {"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
                {"name": "node", "template": {"spec": {"template": {"spec": pod}}}},
            ]}}}},
        ]}));
        let template = json!({
            "volumes": [{"name": "data", "emptyDir": {}}],
            "initContainers": [{"name": "prepare", "env": [{"name": "A", "value": "1"}]}],
            "containers": [
                {"name": "node"},
                {"name": "sidecar", "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", FIELD: {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "C", "value": ""},
                ]},
            ],
        });
        let replicated_jobs = json!([testing::replicated_job("node", Some("trainer"), &template)]);
        testing::found(&job, &testing::with(&json!({}), &replicated_jobs), |draft| {
            check(&job, draft)
        })
    }

    #[test]
    fn a_volume_has_one_source() {
        let claim = json!({"claimName": "c"});
        for (volume, refused) in [
            (json!({"name": "data", "persistentVolumeClaim": claim}), true),
            (json!({"name": "data", "emptyDir": {"medium": "Memory"}}), false),
            (json!({"name": "other", "persistentVolumeClaim": claim}), false),
            // Two of its own.
            (json!({"name": "x", "emptyDir": {}, "persistentVolumeClaim": claim}), true),
        ] {
            let name = volume["name"].as_str().unwrap();
            let expected = format!(
                "spec.runtimePatches[1]: Invalid value: \"{name}\": the volume of the runtime job node would have emptyDir and persistentVolumeClaim: a patch adds to what the runtime has, use another name"
            );
            let expected: Vec<_> = refused.then_some(expected).into_iter().collect();
            assert_eq!(found(&json!({"volumes": [volume]})), expected);
        }
    }

    #[test]
    fn a_variable_has_a_value_or_a_source() {
        let secret = json!({"secretKeyRef": {"name": "s", "key": "k"}});
        for (list, container, variable, members) in [
            (
                "containers",
                "sidecar",
                json!({"name": "A", FIELD: secret}),
                Some("value and valueFrom.secretKeyRef"),
            ),
            (
                "initContainers",
                "prepare",
                json!({"name": "A", FIELD: secret}),
                Some("value and valueFrom.secretKeyRef"),
            ),
            (
                "containers",
                "sidecar",
                json!({"name": "B", "value": "1"}),
                Some("value and valueFrom.fieldRef"),
            ),
            (
                "containers",
                "sidecar",
                json!({"name": "B", FIELD: secret}),
                Some("valueFrom.fieldRef and valueFrom.secretKeyRef"),
            ),
            ("containers", "sidecar", json!({"name": "A", "value": "2"}), None),
            ("containers", "sidecar", json!({"name": "C", FIELD: secret}), None),
            ("containers", "sidecar", json!({"name": "D", FIELD: secret}), None),
        ] {
            let name = &variable["name"];
            let expected = members.map(|members| format!(
                "spec.runtimePatches[1]: Invalid value: {name}: the variable in container {container} of the runtime job node would have {members}: a patch adds to what the runtime has, use another name"
            ));
            let pod = json!({list: [{"name": container, "env": [variable]}]});
            assert_eq!(found(&pod), expected.into_iter().collect::<Vec<_>>(), "{pod}");
        }
    }
}
