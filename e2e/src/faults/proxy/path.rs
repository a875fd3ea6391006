//! What the path of a request says: which object, and of which kind.

/// Kinds that have no namespace, as far as anybody lists them through a proxy. All others have one.
const WITHOUT_NAMESPACE: [&str; 7] = [
    "clusterretentionpolicies",
    "clusterroles",
    "clusterrolebindings",
    "clustertrainingruntimes",
    "customresourcedefinitions",
    "namespaces",
    "nodes",
];

/// The parts of a path; empty where it has no such part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Target {
    /// Reads a path as the API server does. One that is not about a kind, such as `/version`, has no
    /// parts.
    pub(super) fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            ["api", _version, rest @ ..] => Self::below("", rest),
            ["apis", group, _version, rest @ ..] => Self::below(group, rest),
            _ => Self::default(),
        }
    }

    fn below(group: &str, parts: &[&str]) -> Self {
        let (namespace, parts) = match parts {
            // A namespace itself and its subresources are told from what is in it by these names.
            ["namespaces", namespace, rest @ ..]
                if !matches!(rest, [] | ["status" | "finalize"]) =>
            {
                (*namespace, rest)
            }
            _ => ("", parts),
        };
        let part = |index: usize| parts.get(index).copied().unwrap_or_default().to_owned();
        Self {
            group: group.to_owned(),
            resource: part(0),
            name: part(1),
            subresource: part(2),
            namespace: namespace.to_owned(),
        }
    }

    /// Whether it is all objects of a kind that has namespaces, in all of them.
    fn is_cluster_wide(&self) -> bool {
        !self.resource.is_empty()
            && self.name.is_empty()
            && self.namespace.is_empty()
            && !WITHOUT_NAMESPACE.contains(&self.resource.as_str())
    }
}

/// The path that asks for one namespace where `path` asks for all; `None` where it does not.
pub(super) fn narrowed(path: &str, namespace: &str) -> Option<String> {
    let target = Target::of(path);
    let (prefix, resource) = path.trim_end_matches('/').rsplit_once('/')?;
    target.is_cluster_wide().then(|| format!("{prefix}/namespaces/{namespace}/{resource}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_an_object() {
        for (path, [group, resource, namespace, name, subresource]) in [
            ("/version", ["", "", "", "", ""]),
            ("/apis/trainer.kubeflow.org/v1alpha1", ["trainer.kubeflow.org", "", "", "", ""]),
            ("/api/v1/pods", ["", "pods", "", "", ""]),
            ("/api/v1/namespaces/a/pods", ["", "pods", "a", "", ""]),
            ("/api/v1/namespaces/a/pods/b", ["", "pods", "a", "b", ""]),
            ("/api/v1/namespaces/a", ["", "namespaces", "", "a", ""]),
            ("/api/v1/namespaces/a/status", ["", "namespaces", "", "a", "status"]),
            (
                "/apis/trainer.kubeflow.org/v1alpha1/namespaces/a/trainjobs/b/status",
                ["trainer.kubeflow.org", "trainjobs", "a", "b", "status"],
            ),
        ] {
            let expected = Target {
                group: group.into(),
                resource: resource.into(),
                subresource: subresource.into(),
                namespace: namespace.into(),
                name: name.into(),
            };
            assert_eq!(Target::of(path), expected, "{path}");
        }
    }

    #[test]
    fn only_all_objects_of_a_kind_with_namespaces_are_narrowed() {
        for (path, expected) in [
            ("/api/v1/pods", Some("/api/v1/namespaces/mine/pods")),
            ("/apis/g/v1/trainjobs", Some("/apis/g/v1/namespaces/mine/trainjobs")),
            ("/apis/g/v1/clustertrainingruntimes", None),
            ("/apis/g/v1/namespaces/a/trainjobs", None),
            ("/apis/g/v1/namespaces/a/trainjobs/b", None),
            ("/apis/g/v1", None),
            ("/version", None),
            ("/", None),
        ] {
            assert_eq!(narrowed(path, "mine").as_deref(), expected, "{path}");
        }
    }
}
