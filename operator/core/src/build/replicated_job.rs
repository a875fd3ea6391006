//! Finding and changing the parts of a template that concern a TrainJob.
//!
//! A replicated job is known by its name or by its *ancestor* label, which says which step of a
//! TrainJob it is; a container is known by its name.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerPort, EnvVar, PodSpec, Volume, VolumeMount};
use trainjob_api::{
    constants::{ANCESTOR_LABEL, ANCESTOR_TRAINER},
    jobset::ReplicatedJob,
};

/// Which step of a TrainJob the replicated job is.
pub(crate) fn ancestor(replicated_job: &ReplicatedJob) -> Option<&str> {
    let labels = replicated_job.template.metadata.as_ref()?.labels.as_ref()?;
    labels.get(ANCESTOR_LABEL).map(String::as_str)
}

/// Whether the replicated job is the trainer's.
pub(crate) fn is_trainer(replicated_job: &ReplicatedJob) -> bool {
    ancestor(replicated_job) == Some(ANCESTOR_TRAINER)
}

/// The Pods of the replicated job.
pub(crate) fn nodes(replicated_job: &ReplicatedJob) -> i32 {
    replicated_job.template.spec.as_ref().and_then(|spec| spec.parallelism).unwrap_or(1)
}

/// Gives the replicated job this many Pods, all at once.
pub(crate) fn set_nodes(replicated_job: &mut ReplicatedJob, nodes: i32) {
    let spec = replicated_job.template.spec.get_or_insert_default();
    spec.parallelism = Some(nodes);
    spec.completions = Some(nodes);
}

/// The replicated job's container of this name.
pub(crate) fn container<'j>(
    replicated_job: &'j ReplicatedJob,
    name: &str,
) -> Option<&'j Container> {
    let pod = replicated_job.template.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.iter().find(|container| container.name == name)
}

/// The replicated job's init container of this name.
pub(crate) fn init_container<'j>(
    replicated_job: &'j ReplicatedJob,
    name: &str,
) -> Option<&'j Container> {
    let pod = replicated_job.template.spec.as_ref()?.template.spec.as_ref()?;
    pod.init_containers.iter().flatten().find(|container| container.name == name)
}

/// What the replicated job's Pods are made of, to be changed.
pub(crate) fn pod_mut(replicated_job: &mut ReplicatedJob) -> Option<&mut PodSpec> {
    replicated_job.template.spec.as_mut()?.template.spec.as_mut()
}

/// The replicated job's container of this name, to be changed.
pub(crate) fn container_mut<'j>(
    replicated_job: &'j mut ReplicatedJob,
    name: &str,
) -> Option<&'j mut Container> {
    let pod = pod_mut(replicated_job)?;
    pod.containers.iter_mut().find(|container| container.name == name)
}

/// The replicated job's container or, failing that, its init container of this name, to be changed.
pub(crate) fn any_container_mut<'j>(
    replicated_job: &'j mut ReplicatedJob,
    name: &str,
) -> Option<&'j mut Container> {
    let pod = pod_mut(replicated_job)?;
    let init_containers = pod.init_containers.iter_mut().flatten();
    pod.containers.iter_mut().chain(init_containers).find(|container| container.name == name)
}

/// Sets the variables: one that the container has is replaced in its place, the others follow at the end.
///
/// A variable is copied whole, every kind of `valueFrom` included.
pub(crate) fn upsert_env<'v>(
    container: &mut Container,
    variables: impl IntoIterator<Item = &'v EnvVar>,
) {
    let variables: Vec<_> = variables.into_iter().collect();
    if variables.is_empty() {
        return;
    }
    // There may be thousands. Of those with one name the last counts.
    let mut missing: BTreeMap<&str, &EnvVar> =
        variables.iter().map(|variable| (&*variable.name, *variable)).collect();
    let env = container.env.get_or_insert_default();
    for known in &mut *env {
        if let Some(variable) = missing.remove(&*known.name)
            && known != variable
        {
            known.clone_from(variable);
        }
    }
    env.extend(variables.iter().filter_map(|variable| missing.remove(&*variable.name)).cloned());
}

/// Lets the container listen on a TCP port, unless it says so already, under whatever name.
///
/// Number and protocol identify a port. Going by the name, an absent one included, would overwrite the
/// first unnamed port of the runtime.
pub(crate) fn ensure_port(container: &mut Container, number: i32) {
    let ports = container.ports.get_or_insert_default();
    let is_tcp = |port: &ContainerPort| port.protocol.as_deref().is_none_or(|p| p == "TCP");
    if !ports.iter().any(|port| port.container_port == number && is_tcp(port)) {
        ports.push(ContainerPort { container_port: number, ..ContainerPort::default() });
    }
}

/// Adds a volume, in place of one of the same name.
pub(crate) fn upsert_volume(pod: &mut PodSpec, volume: Volume) {
    upsert(pod.volumes.get_or_insert_default(), volume, |a, b| a.name == b.name);
}

/// Mounts a volume, in place of what is mounted at the same path.
pub(crate) fn upsert_mount(container: &mut Container, mount: VolumeMount) {
    let mounts = container.volume_mounts.get_or_insert_default();
    upsert(mounts, mount, |a, b| a.mount_path == b.mount_path);
}

/// Adds an init container, in place of one of the same name.
pub(crate) fn upsert_init_container(pod: &mut PodSpec, container: Container) {
    let containers = pod.init_containers.get_or_insert_default();
    upsert(containers, container, |a, b| a.name == b.name);
}

/// Puts the item in the place of the one it is the same as, or at the end.
fn upsert<T>(items: &mut Vec<T>, item: T, same: impl Fn(&T, &T) -> bool) {
    match items.iter_mut().find(|known| same(known, &item)) {
        Some(known) => *known = item,
        None => items.push(item),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str) -> Vec<EnvVar> {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        let variable = |(name, value): (&str, &str)| EnvVar {
            name: name.into(),
            value: Some(value.into()),
            ..EnvVar::default()
        };
        pairs.map(variable).collect()
    }

    #[test]
    fn variables_are_replaced_in_their_place_or_follow_in_their_order() {
        for (before, wished, after) in [
            ("", "a=1 b=2", "a=1 b=2"),
            ("a=1 b=2", "", "a=1 b=2"),
            ("a=1 b=2 c=3", "d=5 b=4", "a=1 b=4 c=3 d=5"),
            ("a=1", "b=2 b=3 a=4 a=5", "a=5 b=3"),
            ("a=1 a=2", "a=3", "a=3 a=2"),
        ] {
            let mut container = Container { env: Some(variables(before)), ..Container::default() };
            upsert_env(&mut container, &variables(wished));
            assert_eq!(container.env, Some(variables(after)), "{before} and {wished}");
        }
    }

    #[test]
    fn no_variables_leave_the_list_absent() {
        let mut container = Container::default();
        upsert_env(&mut container, &[]);
        assert_eq!(container.env, None);
    }
}
