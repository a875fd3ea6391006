//! Volcano.
//!
//! | what | value |
//! |---|---|
//! | annotation `scheduling.k8s.io/group-name` on the gang's Pods | the TrainJob's name |
//! | `PodGroup`, named as the TrainJob: `minMember`, `minResources` | the gang |
//! | `queue` | annotation `scheduling.volcano.sh/queue-name` of the template |
//! | `priorityClassName` | that of the last replicated job that names one |
//! | `networkTopology` | the policy's |

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta};
use serde::{Deserialize, Serialize};
use trainjob_api::{
    JobSet, podgroup,
    v1alpha1::runtime::{NetworkTopology, PodGroupPolicy, VolcanoPolicy},
};

use super::gang_scheduler::GangScheduler;
use crate::build::gang::Gang;

/// By which Volcano knows the Pods of a gang.
const GROUP: &str = "scheduling.k8s.io/group-name";
/// In which a template, or a patch of it, names a queue.
const QUEUE: &str = "scheduling.volcano.sh/queue-name";

/// What Volcano is asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolcanoSpec {
    /// How many Pods must be placed for any to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_member: Option<i32>,
    /// What these Pods request together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_resources: Option<BTreeMap<String, Quantity>>,
    /// The queue to wait in; Volcano's default where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The priority of the gang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Which part of the network the gang may span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopology>,
}

impl podgroup::Spec for VolcanoSpec {
    const GROUP: &'static str = "scheduling.volcano.sh";
    const VERSION: &'static str = "v1beta1";
}

impl GangScheduler for VolcanoSpec {
    const NAME: &'static str = "PodGroup of Volcano";
    const INSTALL: &'static str = "Volcano";
    const POLICY: &'static str = "volcano";

    type Policy = VolcanoPolicy;

    fn policy(policies: &PodGroupPolicy) -> Option<&VolcanoPolicy> {
        policies.volcano.as_ref()
    }

    fn join(pod: &mut ObjectMeta, group: &str) {
        pod.annotations.get_or_insert_default().insert(GROUP.into(), group.into());
    }

    fn spec(gang: Gang, policy: &VolcanoPolicy, job_set: &JobSet) -> Self {
        let annotations = job_set.metadata.annotations.as_ref();
        Self {
            min_member: Some(gang.members),
            min_resources: Some(gang.resources).filter(|resources| !resources.is_empty()),
            queue: annotations.and_then(|it| it.get(QUEUE)).cloned(),
            priority_class_name: priority_class(job_set),
            network_topology: policy.network_topology.clone(),
        }
    }
}

fn priority_class(job_set: &JobSet) -> Option<String> {
    let replicated_jobs = job_set.spec.replicated_jobs.iter().flatten().rev();
    let mut pods = replicated_jobs
        .filter_map(|replicated_job| replicated_job.template.spec.as_ref()?.template.spec.as_ref());
    pods.find_map(|pod| pod.priority_class_name.clone())
}
