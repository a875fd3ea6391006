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
    parts::{ancestor, nodes},
};

/// The sub-domain of every Pod.
pub(crate) fn subdomain<'d>(draft: &'d Draft<'_>) -> &'d str {
    let network = draft.spec.network.as_ref();
    let subdomain = network.and_then(|n| n.subdomain.as_deref()).filter(|s| !s.is_empty());
    subdomain.unwrap_or_else(|| job_name(draft))
}

/// The hosts of one replica of the step, but for the number of the Pod: `<TrainJob>-<job>-<replica>-`.
pub(crate) fn host_prefix(draft: &Draft<'_>, step: &ReplicatedJob, replica: i32) -> String {
    format!("{}-{}-{replica}-", job_name(draft), step.name)
}

/// The addresses of all Pods of the step, in order.
///
/// A step of the TrainJob has one replica, whatever the template says, because that is what the JobSet
/// will have. (Kubeflow Trainer lists the template's, which includes hosts that never exist.)
pub(crate) fn addresses(draft: &Draft<'_>, step: &ReplicatedJob) -> impl Iterator<Item = String> {
    let replicas = match ancestor(step) {
        Some(ANCESTOR_TRAINER | DATASET_INITIALIZER | MODEL_INITIALIZER) => 1,
        _ => step.replicas.unwrap_or(1),
    };
    let (pods, subdomain) = (nodes(step), subdomain(draft));
    // Billions of replicas without Pods are admitted, and have no address to look for.
    let replicas = if pods > 0 { replicas } else { 0 };
    (0..replicas).flat_map(move |replica| {
        let prefix = host_prefix(draft, step, replica);
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
        super::testing::{job, runtime, step},
        *,
    };

    #[test]
    fn a_host_s_address_is_what_job_set_will_call_it() {
        for (label, replicas, pods, network, expected) in [
            (None, 1, 2, json!({}), &["tj-node-0-0.tj", "tj-node-0-1.tj"][..]),
            (None, 1, 1, json!({"subdomain": "net"}), &["tj-node-0-0.net"]),
            (None, 1, 1, json!({"subdomain": ""}), &["tj-node-0-0.tj"]),
            (None, 2, 1, json!({}), &["tj-node-0-0.tj", "tj-node-1-0.tj"]),
            // The training step has one replica in the JobSet; a label of another kind means nothing.
            (Some("trainer"), 2, 1, json!({}), &["tj-node-0-0.tj"]),
            (Some("else"), 2, 1, json!({}), &["tj-node-0-0.tj", "tj-node-1-0.tj"]),
            (None, 0, 1, json!({}), &[]),
        ] {
            let mut step: Value = step("node", label, &json!([{"name": "node"}]));
            step["replicas"] = json!(replicas);
            step["template"]["spec"]["parallelism"] = json!(pods);
            let runtime = runtime(&json!({
                "template": {"spec": {"network": network, "replicatedJobs": [step]}},
            }));
            let job = job(&json!({}));
            let draft = Draft::new(&job, &runtime).unwrap();
            let step = draft.spec.replicated_jobs.as_ref().unwrap().first().unwrap();
            assert_eq!(addresses(&draft, step).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn billions_of_replicas_without_pods_have_no_address_to_look_for() {
        let mut step: Value = step("node", None, &json!([{"name": "node"}]));
        step["replicas"] = json!(i32::MAX);
        let runtime = runtime(&json!({"template": {"spec": {"replicatedJobs": [step]}}}));
        let job = job(&json!({}));
        let mut draft = Draft::new(&job, &runtime).unwrap();
        let step = &mut draft.spec.replicated_jobs.as_mut().unwrap()[0];
        step.template.spec.as_mut().unwrap().parallelism = Some(0);
        let step = step.clone();
        assert_eq!(addresses(&draft, &step).next(), None);
    }
}
