//! Where the objects of a kind are in the API.

use std::fmt;

/// The path of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    version: String,
    resource: String,
    namespace: Option<String>,
}

/// The objects of a resource of this group and version, in all namespaces.
#[must_use]
pub fn collection(group: &str, version: &str, resource: &str) -> Collection {
    let version = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    Collection { version, resource: resource.to_owned(), namespace: None }
}

impl Collection {
    /// Those of a namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.version)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "/namespaces/{namespace}")?;
        }
        write!(f, "/{}", self.resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_group_has_no_name() {
        assert_eq!(collection("", "v1", "pods").to_string(), "/api/v1/pods");
        let jobs = collection("batch", "v1", "jobs");
        assert_eq!(jobs.to_string(), "/apis/batch/v1/jobs");
        assert_eq!(jobs.in_namespace("a").to_string(), "/apis/batch/v1/namespaces/a/jobs");
    }
}
