//! `PodGroup`: Pods that are to be placed together or not at all, for the two schedulers that know it.
//!
//! Both kinds are others' to define; this is the part of them that is written here.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::v1alpha1::runtime::NetworkTopology;

/// What the coscheduling plugin of scheduler-plugins is asked for.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "scheduling.x-k8s.io",
    version = "v1alpha1",
    kind = "PodGroup",
    root = "CoschedulingPodGroup",
    namespaced,
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A `PodGroup` of scheduler-plugins."
)]
#[serde(rename_all = "camelCase", default)]
pub struct CoschedulingPodGroupSpec {
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

/// What Volcano is asked for.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "scheduling.volcano.sh",
    version = "v1beta1",
    kind = "PodGroup",
    root = "VolcanoPodGroup",
    namespaced,
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq",
    doc = "A `PodGroup` of Volcano."
)]
#[serde(rename_all = "camelCase", default)]
pub struct VolcanoPodGroupSpec {
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
