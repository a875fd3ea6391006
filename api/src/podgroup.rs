//! `PodGroup`: Pods that are to be placed together or not at all.
//!
//! Each scheduler that knows gangs has a kind of its own of this name. The kinds are others' to define, and differ in
//! group, version and spec; the rest is here.

use std::borrow::Cow;

use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use serde::{Deserialize, Serialize};

/// Its kind, whosever it is.
pub const KIND: &str = "PodGroup";

/// What one scheduler is asked for in the spec of its kind.
pub trait Spec {
    /// The API group of the kind.
    const GROUP: &'static str;
    /// The version of the kind.
    const VERSION: &'static str;
}

/// A `PodGroup` of the scheduler that is asked for `S`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroup<S> {
    api_version: String,
    kind: String,
    /// Standard metadata.
    pub metadata: ObjectMeta,
    /// What the scheduler is asked for.
    pub spec: S,
}

impl<S: Spec> PodGroup<S> {
    /// One that is to be created.
    #[must_use]
    pub fn new(metadata: ObjectMeta, spec: S) -> Self {
        let api_version = Self::api_version(&()).into_owned();
        Self { api_version, kind: KIND.to_owned(), metadata, spec }
    }
}

impl<S: Spec> Resource for PodGroup<S> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        S::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        S::VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "podgroups".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Members {
        min_member: i32,
    }

    impl Spec for Members {
        const GROUP: &'static str = "scheduling.example.com";
        const VERSION: &'static str = "v1";
    }

    #[test]
    fn pod_group_is_written_as_the_kind_of_its_scheduler() {
        let metadata = ObjectMeta { name: Some("job".into()), ..ObjectMeta::default() };
        let group = PodGroup::new(metadata, Members { min_member: 2 });
        let expected = json!({
            "apiVersion": "scheduling.example.com/v1",
            "kind": "PodGroup",
            "metadata": {"name": "job"},
            "spec": {"minMember": 2},
        });
        assert_eq!(serde_json::to_value(&group).unwrap(), expected);
        assert_eq!(serde_json::from_value::<PodGroup<Members>>(expected).unwrap(), group);
        assert_eq!(
            PodGroup::<Members>::url_path(&(), Some("team")),
            "/apis/scheduling.example.com/v1/namespaces/team/podgroups"
        );
    }
}
