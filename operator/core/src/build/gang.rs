//! Gangs: Pods that start together or not at all, and what they ask for together.
//!
//! A step that others wait for to complete is over before they start, so it is no part of the gang: with
//! it no gang could ever be complete. Nor does the gang wait for a step that itself waits for another to
//! be ready, such as a launcher that waits for its nodes; its Pods belong to it all the same. (Kubeflow
//! Trainer counts every Pod of the job, once for each Job that is to be made of it.)

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::PodTemplateSpec, apimachinery::pkg::api::resource::Quantity};
use trainjob_api::{JobSet, jobset::ReplicatedJob};

use super::{
    amount::{self, Amounts},
    error::BuildError,
    parts::nodes,
};

/// What has to be placed at once.
#[derive(Debug)]
pub(crate) struct Gang {
    /// So many Pods.
    pub(crate) members: i32,
    /// With these requests together.
    pub(crate) resources: BTreeMap<String, Quantity>,
}

/// The gang of a JobSet.
pub(crate) fn gang(job_set: &JobSet) -> Result<Gang, BuildError> {
    let steps = job_set.spec.replicated_jobs.as_deref().unwrap_or_default();
    let (mut members, mut resources) = (0_u32, Amounts::new());
    for step in steps.iter().filter(|step| is_member(step, steps) && !is_late(step, steps)) {
        let count = |count: i32| u32::try_from(count).unwrap_or(0);
        let pods = count(step.replicas.unwrap_or(1)).saturating_mul(count(nodes(step)));
        members = members.saturating_add(pods);
        let pod = step.template.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        let requests = pod.map(amount::requests).transpose()?.unwrap_or_default();
        let requests = requests.into_iter().map(|(name, it)| (name, it.times(pods.into())));
        amount::add(&mut resources, &requests.collect());
    }
    Ok(Gang {
        members: i32::try_from(members).unwrap_or(i32::MAX),
        resources: resources
            .iter()
            .map(|(name, it)| (name.clone(), Quantity(it.to_string())))
            .collect(),
    })
}

/// Whether no step waits for this one to be over.
fn is_member(step: &ReplicatedJob, steps: &[ReplicatedJob]) -> bool {
    !steps.iter().any(|other| waits_for(other, step, "Complete"))
}

/// Whether it starts only when another member is ready.
fn is_late(step: &ReplicatedJob, steps: &[ReplicatedJob]) -> bool {
    steps.iter().any(|other| is_member(other, steps) && waits_for(step, other, "Ready"))
}

fn waits_for(step: &ReplicatedJob, other: &ReplicatedJob, status: &str) -> bool {
    let mut dependencies = step.depends_on.iter().flatten();
    dependencies.any(|dependency| dependency.name == other.name && dependency.status == status)
}

/// The Pod templates of the gang's members.
pub(crate) fn pods_mut(job_set: &mut JobSet) -> impl Iterator<Item = &mut PodTemplateSpec> {
    let steps = job_set.spec.replicated_jobs.as_mut();
    let names: Vec<bool> = steps
        .as_deref()
        .map_or_else(Vec::new, |steps| steps.iter().map(|step| is_member(step, steps)).collect());
    let steps = steps.into_iter().flatten().zip(names).filter(|(_, member)| *member);
    steps.map(|(step, _)| &mut step.template.spec.get_or_insert_default().template)
}
