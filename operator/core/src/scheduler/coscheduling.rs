//! Coscheduling: the plugin of scheduler-plugins.
//!
//! | what | value |
//! |---|---|
//! | label `scheduling.x-k8s.io/pod-group` on the gang's Pods | the TrainJob's name |
//! | `PodGroup`, named as the TrainJob: `minMember`, `minResources` | the gang |
//! | `scheduleTimeoutSeconds` | the policy's |

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta};
use serde::{Deserialize, Serialize};
use trainjob_api::{
    JobSet, podgroup,
    v1alpha1::runtime::{CoschedulingPolicy, PodGroupPolicy},
};

use super::gang_scheduler::GangScheduler;
use crate::build::gang::Gang;

/// By which the plugin knows the Pods of a gang.
const LABEL: &str = "scheduling.x-k8s.io/pod-group";

/// What the plugin is asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CoschedulingSpec {
    /// How many Pods must be placed for any to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_member: Option<i32>,
    /// What these Pods request together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_resources: Option<BTreeMap<String, Quantity>>,
    /// Seconds to wait for the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<i32>,
}

impl podgroup::Spec for CoschedulingSpec {
    const GROUP: &'static str = "scheduling.x-k8s.io";
    const VERSION: &'static str = "v1alpha1";
}

impl GangScheduler for CoschedulingSpec {
    const NAME: &'static str = "PodGroup of scheduler-plugins";
    const INSTALL: &'static str = "scheduler-plugins";
    const POLICY: &'static str = "coscheduling";

    type Policy = CoschedulingPolicy;

    fn policy(policies: &PodGroupPolicy) -> Option<&CoschedulingPolicy> {
        policies.coscheduling.as_ref()
    }

    fn join(pod: &mut ObjectMeta, group: &str) {
        pod.labels.get_or_insert_default().insert(LABEL.into(), group.into());
    }

    fn spec(gang: Gang, policy: &CoschedulingPolicy, _: &JobSet) -> Self {
        Self {
            min_member: Some(gang.members),
            min_resources: Some(gang.resources).filter(|resources| !resources.is_empty()),
            schedule_timeout_seconds: policy.schedule_timeout_seconds,
        }
    }
}
