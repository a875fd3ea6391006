//! Gangs: Pods that start together or not at all, and what they ask for together.
//!
//! A replicated job that others wait for to complete is over before they start, so it is no part of the gang: with
//! it no gang could ever be complete. Nor does the gang wait for a replicated job that itself waits for another to
//! be ready, such as a launcher that waits for its nodes; its Pods belong to it all the same. (Kubeflow
//! Trainer counts every Pod of the job, once for each Job that is to be made of it.)

use std::collections::{BTreeMap, HashSet};

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
    let completed = completed_first(replicated_jobs);
    let is_member = |it: &&ReplicatedJob| !completed.contains(&*it.name);
    let names: HashSet<_> = replicated_jobs.iter().filter(is_member).map(|it| &*it.name).collect();
    let first = |it: &&ReplicatedJob| is_member(it) && !is_late(it, &names);
    for replicated_job in replicated_jobs.iter().filter(first) {
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

/// The names of those that others wait for to complete, which are no members. They are collected once: a runtime may have
/// thousands of replicated jobs, and the webhook builds what it judges.
fn completed_first(replicated_jobs: &[ReplicatedJob]) -> HashSet<&str> {
    let dependencies = replicated_jobs.iter().flat_map(|it| it.depends_on.iter().flatten());
    dependencies.filter(|it| it.status == "Complete").map(|it| &*it.name).collect()
}

/// Whether it starts only when another of these members is ready.
fn is_late(replicated_job: &ReplicatedJob, members: &HashSet<&str>) -> bool {
    let mut dependencies = replicated_job.depends_on.iter().flatten();
    dependencies.any(|it| it.status == "Ready" && members.contains(&*it.name))
}

/// The Pod templates of the gang's members.
pub(crate) fn pods_mut(job_set: &mut JobSet) -> impl Iterator<Item = &mut PodTemplateSpec> {
    let replicated_jobs = job_set.spec.replicated_jobs.as_mut();
    let are_members: Vec<bool> = replicated_jobs.as_deref().map_or_else(Vec::new, |all| {
        let completed = completed_first(all);
        all.iter().map(|it| !completed.contains(&*it.name)).collect()
    });
    let members =
        replicated_jobs.into_iter().flatten().zip(are_members).filter(|(_, is_member)| *is_member);
    members.map(|(replicated_job, _)| {
        &mut replicated_job.template.spec.get_or_insert_default().template
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn members(replicated_jobs: &[Value]) -> i32 {
        let job_set = json!({"metadata": {}, "spec": {"replicatedJobs": replicated_jobs}});
        gang(&serde_json::from_value(job_set).unwrap()).unwrap().members
    }

    fn replicated_job(name: &str, waits: &Value) -> Value {
        json!({"name": name, "dependsOn": waits, "template": {}})
    }

    #[test]
    fn gang_has_neither_what_is_over_before_it_nor_what_waits_for_it() {
        let wait = |name: &str, status: &str| json!([{"name": name, "status": status}]);
        let initializer = replicated_job("initializer", &json!([]));
        let node = replicated_job("node", &wait("initializer", "Complete"));
        let launcher = replicated_job("launcher", &wait("node", "Ready"));
        let patient = replicated_job("patient", &wait("initializer", "Ready"));
        for (what, replicated_jobs, expected) in [
            ("alone", vec![&initializer], 1),
            ("it waits for the first", vec![&initializer, &node], 1),
            ("the last waits for it", vec![&initializer, &node, &launcher], 1),
            ("one waits for what is no member", vec![&initializer, &node, &patient], 2),
        ] {
            let replicated_jobs: Vec<_> = replicated_jobs.into_iter().cloned().collect();
            assert_eq!(members(&replicated_jobs), expected, "{what}");
        }
    }

    /// Took minutes when each was compared with all others, for each of them.
    #[test]
    fn gang_of_thousands_of_replicated_jobs_is_counted() {
        let jobs: Vec<_> = (0..3_000)
            .map(|number| replicated_job(&format!("node-{number}"), &json!([])))
            .collect();
        assert_eq!(members(&jobs), 3_000);
    }
}
