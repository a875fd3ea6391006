//! A policy as people name it.

use std::{fmt, sync::Arc};

/// A policy as people name it: by kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyReference {
    /// The namespace; `None` for a policy of the cluster.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Arc<str>,
}

impl fmt::Display for PolicyReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.namespace {
            Some(namespace) => write!(f, "RetentionPolicy {namespace}/{name}"),
            None => write!(f, "ClusterRetentionPolicy {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_named_so_that_it_can_be_found() {
        for (namespace, expected) in
            [(Some("a"), "RetentionPolicy a/p"), (None, "ClusterRetentionPolicy p")]
        {
            let reference =
                PolicyReference { namespace: namespace.map(Arc::from), name: "p".into() };
            assert_eq!(reference.to_string(), expected);
        }
    }
}
