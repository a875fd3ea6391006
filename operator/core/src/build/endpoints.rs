//! The names by which Pods find each other, as JobSet will give them.
//!
//! | what | name |
//! |---|---|
//! | sub-domain | `network.subdomain` of the template, else the TrainJob's name |
//! | host | `<TrainJob>-<job>-<replica>-<Pod>` |
//! | address | `<host>.<sub-domain>`, which the search path of a Pod completes |
//!
//! No address says `svc.cluster.local`: how a cluster's domain is called is not known here.

use trainjob_api::{
    constants::{ANCESTOR_TRAINER, DATASET_INITIALIZER, MODEL_INITIALIZER},
    jobset::ReplicatedJob,
};

use super::{
    draft::Draft,
    replicated_job::{ancestor, nodes},
};

/// The sub-domain of every Pod.
pub(crate) fn subdomain<'d>(draft: &'d Draft<'_>) -> &'d str {
    let network = draft.spec.network.as_ref();
    let subdomain = network.and_then(|n| n.subdomain.as_deref()).filter(|s| !s.is_empty());
    subdomain.unwrap_or_else(|| job_name(draft))
}

/// The hosts of one replica of the replicated job, but for the number of the Pod: `<TrainJob>-<job>-<replica>-`.
pub(crate) fn host_prefix(
    draft: &Draft<'_>,
    replicated_job: &ReplicatedJob,
    replica: i32,
) -> String {
    format!("{}-{}-{replica}-", job_name(draft), replicated_job.name)
}

/// The addresses of all Pods of the replicated job, in order.
///
/// A replicated job with an ancestor label has one replica, whatever the template says, because that is what the JobSet
/// will have. (Kubeflow Trainer lists the template's, which includes hosts that never exist.)
pub(crate) fn addresses(
    draft: &Draft<'_>,
    replicated_job: &ReplicatedJob,
) -> impl Iterator<Item = String> {
    let replicas = match ancestor(replicated_job) {
        Some(ANCESTOR_TRAINER | DATASET_INITIALIZER | MODEL_INITIALIZER) => 1,
        _ => replicated_job.replicas.unwrap_or(1),
    };
    let (pods, subdomain) = (nodes(replicated_job), subdomain(draft));
    // Billions of replicas without Pods are admitted, and have no address to look for.
    let replicas = if pods > 0 { replicas } else { 0 };
    (0..replicas).flat_map(move |replica| {
        let prefix = host_prefix(draft, replicated_job, replica);
        (0..pods).map(move |pod| format!("{prefix}{pod}.{subdomain}"))
    })
}

fn job_name<'d>(draft: &'d Draft<'_>) -> &'d str {
    draft.job.metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::testing::{job, replicated_job, runtime},
        *,
    };

    #[test]
    fn a_host_s_address_is_what_job_set_will_call_it() {
        for (label, replicas, pods, network, expected) in [
            (None, 1, 2, json!({}), &["tj-node-0-0.tj", "tj-node-0-1.tj"][..]),
            (None, 1, 1, json!({"subdomain": "net"}), &["tj-node-0-0.net"]),
            (None, 1, 1, json!({"subdomain": ""}), &["tj-node-0-0.tj"]),
            (None, 2, 1, json!({}), &["tj-node-0-0.tj", "tj-node-1-0.tj"]),
            // The trainer's replicated job has one replica in the JobSet; a label of another kind means nothing.
            (Some("trainer"), 2, 1, json!({}), &["tj-node-0-0.tj"]),
            (Some("else"), 2, 1, json!({}), &["tj-node-0-0.tj", "tj-node-1-0.tj"]),
            (None, 0, 1, json!({}), &[]),
        ] {
            let mut replicated_job: Value =
                replicated_job("node", label, &json!([{"name": "node"}]));
            replicated_job["replicas"] = json!(replicas);
            replicated_job["template"]["spec"]["parallelism"] = json!(pods);
            let runtime = runtime(&json!({
                "template": {"spec": {"network": network, "replicatedJobs": [replicated_job]}},
            }));
            let job = job(&json!({}));
            let draft = Draft::new(&job, &runtime).unwrap();
            let replicated_job = draft.spec.replicated_jobs.as_ref().unwrap().first().unwrap();
            assert_eq!(addresses(&draft, replicated_job).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn billions_of_replicas_without_pods_have_no_address_to_look_for() {
        let mut replicated_job: Value = replicated_job("node", None, &json!([{"name": "node"}]));
        replicated_job["replicas"] = json!(i32::MAX);
        let runtime = runtime(&json!({"template": {"spec": {"replicatedJobs": [replicated_job]}}}));
        let job = job(&json!({}));
        let mut draft = Draft::new(&job, &runtime).unwrap();
        let replicated_job = &mut draft.spec.replicated_jobs.as_mut().unwrap()[0];
        replicated_job.template.spec.as_mut().unwrap().parallelism = Some(0);
        let replicated_job = replicated_job.clone();
        assert_eq!(addresses(&draft, &replicated_job).next(), None);
    }
}
