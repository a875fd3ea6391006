//! The schedulers that know gangs, by as much of their kinds as the operator uses of them.

use e2e::fixtures::tenant::Tenant;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

/// A scheduler that knows gangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheduler {
    Coscheduling,
    Volcano,
}

impl Scheduler {
    /// Its API group.
    pub(crate) const fn group(self) -> &'static str {
        match self {
            Self::Coscheduling => "scheduling.x-k8s.io",
            Self::Volcano => "scheduling.volcano.sh",
        }
    }

    const fn version(self) -> &'static str {
        match self {
            Self::Coscheduling => "v1alpha1",
            Self::Volcano => "v1beta1",
        }
    }

    /// The `podGroupPolicy` of a runtime.
    pub(crate) fn policy(self) -> Value {
        match self {
            Self::Coscheduling => json!({"coscheduling": {}}),
            Self::Volcano => json!({"volcano": {}}),
        }
    }

    /// The definition of its kind, which takes whatever it is given.
    pub(crate) fn definition(self) -> Value {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("podgroups.{}", self.group())},
            "spec": {
                "group": self.group(),
                "scope": "Namespaced",
                "names": {"kind": "PodGroup", "plural": "podgroups"},
                "versions": [{
                    "name": self.version(), "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": any},
                }],
            },
        })
    }

    /// A PodGroup of somebody else.
    pub(crate) fn pod_group(self, name: &str) -> Value {
        json!({
            "apiVersion": format!("{}/{}", self.group(), self.version()),
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": 7},
        })
    }

    /// The PodGroups of a namespace.
    pub(crate) fn pod_groups(self, tenant: &Tenant<'_>) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(self.group(), self.version(), "PodGroup");
        let kind = ApiResource::from_gvk_with_plural(&kind, "podgroups");
        Api::namespaced_with(tenant.client.clone(), &tenant.namespace, &kind)
    }
}
