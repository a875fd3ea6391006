//! Gangs: Pods that start together or not at all, and what they ask for together.
//!
//! A replicated job that others wait for to complete is over before they start, so it is no part of the gang: with
//! it no gang could ever be complete. Nor does the gang wait for a replicated job that itself waits for another to
//! be ready, such as a launcher that waits for its nodes; its Pods belong to it all the same. (Kubeflow
//! Trainer counts every Pod of the job, once for each Job that is to be made of it.)

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::PodTemplateSpec, apimachinery::pkg::api::resource::Quantity};
use trainjob_api::{JobSet, jobset::ReplicatedJob};

use super::{
    amount::{self, Amounts},
    error::BuildError,
    replicated_job::nodes,
};

/// What has to be placed at once.
#[derive(Debug)]
pub struct Gang {
    /// So many Pods.
    pub members: i32,
    /// With these requests together.
    pub resources: BTreeMap<String, Quantity>,
}

/// The gang of a JobSet.
pub(crate) fn gang(job_set: &JobSet) -> Result<Gang, BuildError> {
    let replicated_jobs = job_set.spec.replicated_jobs.as_deref().unwrap_or_default();
    let (mut members, mut resources) = (0_u32, Amounts::new());
    for replicated_job in replicated_jobs.iter().filter(|replicated_job| {
        is_member(replicated_job, replicated_jobs) && !is_late(replicated_job, replicated_jobs)
    }) {
        let count = |count: i32| u32::try_from(count).unwrap_or(0);
        let pods = count(replicated_job.replicas.unwrap_or(1))
            .saturating_mul(count(nodes(replicated_job)));
        members = members.saturating_add(pods);
        let pod =
            replicated_job.template.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
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

/// Whether no replicated job waits for this one to be over.
fn is_member(replicated_job: &ReplicatedJob, replicated_jobs: &[ReplicatedJob]) -> bool {
    !replicated_jobs.iter().any(|other| waits_for(other, replicated_job, "Complete"))
}

/// Whether it starts only when another member is ready.
fn is_late(replicated_job: &ReplicatedJob, replicated_jobs: &[ReplicatedJob]) -> bool {
    replicated_jobs
        .iter()
        .any(|other| is_member(other, replicated_jobs) && waits_for(replicated_job, other, "Ready"))
}

fn waits_for(replicated_job: &ReplicatedJob, other: &ReplicatedJob, status: &str) -> bool {
    let mut dependencies = replicated_job.depends_on.iter().flatten();
    dependencies.any(|dependency| dependency.name == other.name && dependency.status == status)
}

/// The Pod templates of the gang's members.
pub(crate) fn pods_mut(job_set: &mut JobSet) -> impl Iterator<Item = &mut PodTemplateSpec> {
    let replicated_jobs = job_set.spec.replicated_jobs.as_mut();
    let names: Vec<bool> = replicated_jobs.as_deref().map_or_else(Vec::new, |replicated_jobs| {
        replicated_jobs
            .iter()
            .map(|replicated_job| is_member(replicated_job, replicated_jobs))
            .collect()
    });
    let replicated_jobs =
        replicated_jobs.into_iter().flatten().zip(names).filter(|(_, member)| *member);
    replicated_jobs.map(|(replicated_job, _)| {
        &mut replicated_job.template.spec.get_or_insert_default().template
    })
}
