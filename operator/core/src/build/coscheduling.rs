//! Coscheduling: the plugin of scheduler-plugins.
//!
//! | what | value |
//! |---|---|
//! | label `scheduling.x-k8s.io/pod-group` on the gang's Pods | the TrainJob's name |
//! | `PodGroup`, named as the TrainJob: `minMember`, `minResources` | the gang |
//! | `scheduleTimeoutSeconds` | the policy's |

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use trainjob_api::{
    JobSet, podgroup::CoschedulingPodGroupSpec, v1alpha1::runtime::CoschedulingPolicy,
};

use crate::facts::PodGroupSpec;

use super::{
    gang::{Gang, pods_mut},
    objects::PodGroup,
};

/// By which the plugin knows the Pods of a gang.
const LABEL: &str = "scheduling.x-k8s.io/pod-group";

/// Writes the table above.
pub(crate) fn pod_group(
    job_set: &mut JobSet,
    metadata: ObjectMeta,
    gang: Gang,
    policy: &CoschedulingPolicy,
) -> PodGroup {
    let name = metadata.name.clone().unwrap_or_default();
    for pod in pods_mut(job_set) {
        let labels = &mut pod.metadata.get_or_insert_default().labels;
        labels.get_or_insert_default().insert(LABEL.into(), name.clone());
    }
    let spec = CoschedulingPodGroupSpec {
        min_member: Some(gang.members),
        min_resources: Some(gang.resources).filter(|resources| !resources.is_empty()),
        schedule_timeout_seconds: policy.schedule_timeout_seconds,
    };
    PodGroup { metadata, spec: PodGroupSpec::Coscheduling(spec) }
}
