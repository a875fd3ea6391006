//! Volcano.
//!
//! | what | value |
//! |---|---|
//! | annotation `scheduling.k8s.io/group-name` on the gang's Pods | the TrainJob's name |
//! | `PodGroup`, named as the TrainJob: `minMember`, `minResources` | the gang |
//! | `queue` | annotation `scheduling.volcano.sh/queue-name` of the template |
//! | `priorityClassName` | that of the last replicated job that names one |
//! | `networkTopology` | the policy's |

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use trainjob_api::{JobSet, podgroup::VolcanoPodGroupSpec, v1alpha1::runtime::VolcanoPolicy};

use crate::facts::PodGroupSpec;

use super::{
    gang::{Gang, pods_mut},
    objects::PodGroup,
};

/// By which Volcano knows the Pods of a gang.
const GROUP: &str = "scheduling.k8s.io/group-name";
/// In which a template, or a patch of it, names a queue.
const QUEUE: &str = "scheduling.volcano.sh/queue-name";

/// Writes the table above.
pub(crate) fn pod_group(
    job_set: &mut JobSet,
    metadata: ObjectMeta,
    gang: Gang,
    policy: &VolcanoPolicy,
) -> PodGroup {
    let name = metadata.name.clone().unwrap_or_default();
    for pod in pods_mut(job_set) {
        let annotations = &mut pod.metadata.get_or_insert_default().annotations;
        annotations.get_or_insert_default().insert(GROUP.into(), name.clone());
    }
    let queue = job_set.metadata.annotations.as_ref().and_then(|it| it.get(QUEUE)).cloned();
    let spec = VolcanoPodGroupSpec {
        min_member: Some(gang.members),
        min_resources: Some(gang.resources).filter(|resources| !resources.is_empty()),
        queue,
        priority_class_name: priority_class(job_set),
        network_topology: policy.network_topology.clone(),
    };
    PodGroup { metadata, spec: PodGroupSpec::Volcano(spec) }
}

fn priority_class(job_set: &JobSet) -> Option<String> {
    let replicated_jobs = job_set.spec.replicated_jobs.iter().flatten().rev();
    let mut pods = replicated_jobs
        .filter_map(|replicated_job| replicated_job.template.spec.as_ref()?.template.spec.as_ref());
    pods.find_map(|pod| pod.priority_class_name.clone())
}
