//! The variables of containers, while patches are merged.
//!
//! A job may have ten thousand of them, each of which takes half a kilobyte of memory, and a round trip
//! through JSON, which the rest of a patch takes, would be most of the time that building takes. So they are
//! set aside, merged in place, and put back.

use std::collections::{HashMap, VecDeque};

use k8s_openapi::{
    api::core::v1::{Container, EnvVar, EnvVarSource, VolumeMount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::Value;
use trainjob_api::{
    jobset::JobSetSpec,
    v1alpha1::patches::{
        ContainerPatch, JobSetSpecPatch, JobSpecPatch, JobTemplatePatch, PodSpecPatch,
        PodTemplatePatch, ReplicatedJobPatch,
    },
};

use super::strategic_merge::{self, merge_items};

/// Name of the job, whether it is an init container, and its name.
type Which = (String, bool, String);

/// The variables of a template, by container. Of containers with the same name, which no schema admits but a
/// stored template may have, one after the other.
#[derive(Debug)]
pub(crate) struct Variables(HashMap<Which, VecDeque<Option<Vec<EnvVar>>>>);

impl Variables {
    /// Takes all variables out of a template.
    pub(crate) fn take(spec: &mut JobSetSpec) -> Self {
        let mut all = HashMap::<_, VecDeque<_>>::new();
        for (job, init, container) in containers(spec) {
            let key = (job.to_owned(), init, container.name.clone());
            all.entry(key).or_default().push_back(container.env.take());
        }
        Self(all)
    }

    /// Lays those of a patch over these, and gives them to the containers of the patched template.
    ///
    /// # Errors
    ///
    /// The two sources of one variable do not go together.
    pub(crate) fn put_back(
        mut self,
        patch: &JobSetSpecPatch,
        spec: &mut JobSetSpec,
    ) -> serde_json::Result<()> {
        let mut changes = changes(patch);
        for (job, init, container) in containers(spec) {
            let key = (job.to_owned(), init, container.name.clone());
            container.env = self.0.get_mut(&key).and_then(VecDeque::pop_front).flatten();
            if let Some(change) = changes.remove(&(job, init, container.name.as_str())) {
                merge(container.env.get_or_insert_default(), change)?;
            }
        }
        Ok(())
    }
}

/// The containers of a template, each with the name of its job and whether it is an init container.
fn containers(spec: &mut JobSetSpec) -> impl Iterator<Item = (&str, bool, &mut Container)> {
    spec.replicated_jobs.iter_mut().flatten().flat_map(|job| {
        let name = job.name.as_str();
        let pod = job.template.spec.as_mut().and_then(|spec| spec.template.spec.as_mut());
        pod.into_iter().flat_map(move |pod| {
            let containers = pod.containers.iter_mut().map(move |it| (name, false, it));
            let init_containers = pod.init_containers.iter_mut().flatten();
            containers.chain(init_containers.map(move |it| (name, true, it)))
        })
    })
}

/// The variables in a patch, where there are any.
fn changes(patch: &JobSetSpecPatch) -> HashMap<(&str, bool, &str), &[EnvVar]> {
    let mut all = HashMap::new();
    for job in patch.replicated_jobs.iter().flatten() {
        let template = job.template.as_ref().and_then(|it| it.spec.as_ref()?.template.as_ref());
        let Some(pod) = template.and_then(|it| it.spec.as_ref()) else { continue };
        let containers = pod.containers.iter().flatten().map(|it| (false, it));
        let init_containers = pod.init_containers.iter().flatten().map(|it| (true, it));
        for (init, ContainerPatch { name, env, .. }) in containers.chain(init_containers) {
            if let Some(env) = env.as_deref().filter(|env| !env.is_empty()) {
                all.insert((job.name.as_str(), init, name.as_str()), env);
            }
        }
    }
    all
}

/// A patch with everything in it but variables, and but metadata that is no label or annotation: a patch
/// must not name what it patches, or put finalizers on Pods.
pub(crate) fn without_variables(patch: &JobSetSpecPatch) -> JobSetSpecPatch {
    let jobs = |jobs: &Vec<ReplicatedJobPatch>| jobs.iter().map(job_without).collect();
    JobSetSpecPatch { replicated_jobs: patch.replicated_jobs.as_ref().map(jobs) }
}

fn job_without(ReplicatedJobPatch { name, template }: &ReplicatedJobPatch) -> ReplicatedJobPatch {
    let pods = |it: &PodTemplatePatch| PodTemplatePatch {
        metadata: it.metadata.as_ref().map(labels_and_annotations),
        spec: it.spec.as_ref().map(pod_without),
    };
    let spec = |it: &JobSpecPatch| JobSpecPatch { template: it.template.as_ref().map(pods) };
    let template = template.as_ref().map(|it| JobTemplatePatch {
        metadata: it.metadata.as_ref().map(labels_and_annotations),
        spec: it.spec.as_ref().map(spec),
    });
    ReplicatedJobPatch { name: name.clone(), template }
}

fn labels_and_annotations(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        ..ObjectMeta::default()
    }
}

fn pod_without(pod: &PodSpecPatch) -> PodSpecPatch {
    let containers = |containers: &Vec<ContainerPatch>| {
        let without = |it: &ContainerPatch| ContainerPatch {
            name: it.name.clone(),
            env: None,
            volume_mounts: it.volume_mounts.as_ref().map(|all| all.iter().map(mount).collect()),
            security_context: it.security_context.clone(),
        };
        containers.iter().map(without).collect()
    };
    PodSpecPatch {
        service_account_name: pod.service_account_name.clone(),
        volumes: pod.volumes.clone(),
        init_containers: pod.init_containers.as_ref().map(containers),
        containers: pod.containers.as_ref().map(containers),
        image_pull_secrets: pod.image_pull_secrets.clone(),
        security_context: pod.security_context.clone(),
        termination_grace_period_seconds: pod.termination_grace_period_seconds,
        node_selector: pod.node_selector.clone(),
        affinity: pod.affinity.clone(),
        tolerations: pod.tolerations.clone(),
        scheduling_gates: pod.scheduling_gates.clone(),
    }
}

/// A mount, without what the Go types behind Kubernetes do not even write: a patch says nothing by it.
fn mount(mount: &VolumeMount) -> VolumeMount {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    VolumeMount {
        read_only: mount.read_only.filter(|read_only| *read_only),
        sub_path: text(&mount.sub_path),
        sub_path_expr: text(&mount.sub_path_expr),
        ..mount.clone()
    }
}

/// Lays the variables of a patch over those of a container: in place where they are there in the same order
/// (the schema sees to it that no two have the same name).
fn merge(variables: &mut Vec<EnvVar>, change: &[EnvVar]) -> serde_json::Result<()> {
    let mut changes = change.iter().peekable();
    for variable in variables.iter() {
        changes.next_if(|change| change.name == variable.name);
    }
    if changes.peek().is_none() {
        let mut changes = change.iter().peekable();
        for variable in variables {
            if let Some(change) = changes.next_if(|change| change.name == variable.name) {
                overlay(variable, change)?;
            }
        }
        return Ok(());
    }
    let mut problem = Ok(());
    let overlay = |variable: &mut EnvVar, change: EnvVar| {
        if let (Err(error), true) = (overlay(variable, &change), problem.is_ok()) {
            problem = Err(error);
        }
    };
    let current = std::mem::take(variables);
    *variables = merge_items(current, change.to_vec(), |it| it.name.as_str(), overlay);
    problem
}

fn overlay(variable: &mut EnvVar, change: &EnvVar) -> serde_json::Result<()> {
    // The Go types behind Kubernetes do not even write an empty value: a patch says nothing by it.
    if change.value.as_ref().is_some_and(|value| !value.is_empty()) {
        variable.value.clone_from(&change.value);
    }
    if let Some(change) = &change.value_from {
        variable.value_from = Some(match &variable.value_from {
            Some(current) => merged_source(current, change)?,
            None => change.clone(),
        });
    }
    Ok(())
}

fn merged_source(
    current: &EnvVarSource,
    change: &EnvVarSource,
) -> serde_json::Result<EnvVarSource> {
    let (mut current, change) = (serde_json::to_value(current)?, serde_json::to_value(change)?);
    if let (Value::Object(current), Value::Object(change)) = (&mut current, &change) {
        strategic_merge::merge(current, change);
    }
    serde_json::from_value(current)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_empty_in_a_patch_says_nothing() {
        let read = |env: Value| serde_json::from_value::<Vec<EnvVar>>(env).unwrap();
        let mut variables = read(json!([{"name": "DEBUG", "value": "1"}]));
        merge(&mut variables, &read(json!([{"name": "DEBUG", "value": ""}]))).unwrap();
        assert_eq!(variables, read(json!([{"name": "DEBUG", "value": "1"}])));
        let empty = json!({"name": "v", "mountPath": "/v", "readOnly": false, "subPath": ""});
        let said = mount(&serde_json::from_value(empty).unwrap());
        assert_eq!(serde_json::to_value(said).unwrap(), json!({"name": "v", "mountPath": "/v"}));
    }

    #[test]
    fn containers_of_the_same_name_keep_their_own() {
        let container = |value: &str| json!({"name": "a", "env": [{"name": "A", "value": value}]});
        let containers = json!([container("1"), container("2")]);
        let template = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let jobs = json!({"replicatedJobs": [{"name": "node", "template": template}]});
        let template: JobSetSpec = serde_json::from_value(jobs).unwrap();
        let mut spec = template.clone();
        let variables = Variables::take(&mut spec);
        assert_ne!(spec, template);
        variables.put_back(&JobSetSpecPatch::default(), &mut spec).unwrap();
        assert_eq!(spec, template);
    }

    #[test]
    fn variables_are_merged_as_all_of_a_patch_is() {
        for (current, change) in [
            (json!([{"name": "A", "value": "1"}]), json!([{"name": "B", "value": "2"}])),
            (
                json!([{"name": "A", "value": "1"}, {"name": "B"}, {"name": "C"}]),
                json!([{"name": "A", "value": "2"}, {"name": "C", "value": "3"}]),
            ),
            (
                json!([{"name": "A", "value": "1"}, {"name": "B"}, {"name": "C"}]),
                json!([{"name": "C", "value": "2"}, {"name": "A", "value": "3"}]),
            ),
            (
                json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]),
                json!([{"name": "N"}, {"name": "B", "value": "2"}]),
            ),
            (
                json!([{"name": "A", "value": "1"}]),
                json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}]),
            ),
            (
                json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}]),
                json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "b", "key": "k"}}}]),
            ),
            (
                json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}]),
                json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "b", "key": "k"}}}]),
            ),
            (json!([]), json!([{"name": "A"}])),
            (json!([{"name": "A"}]), json!([])),
        ] {
            let mut expected = json!({"env": current});
            let patch = json!({"env": change});
            strategic_merge::merge(expected.as_object_mut().unwrap(), patch.as_object().unwrap());
            let read = |env: &Value| serde_json::from_value::<Vec<EnvVar>>(env.clone()).unwrap();
            let (mut merged, change) = (read(&current), read(&change));
            merge(&mut merged, &change).unwrap();
            let merged = serde_json::to_value(merged).unwrap();
            let expected = serde_json::to_value(read(&expected["env"])).unwrap();
            assert_eq!(merged, expected, "{current} {change:?}");
        }
    }
}
