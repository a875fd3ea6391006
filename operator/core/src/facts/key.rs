//! The key of an object.

use std::{fmt, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Namespace and name of an object; a TrainJob and its JobSet share theirs.
///
/// Caches, queue and timers all know a job by its key, so a copy of one takes no room for the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key in an object's metadata; empty parts where the metadata has none.
    #[must_use]
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.as_deref().unwrap_or_default().into(),
            name: metadata.name.as_deref().unwrap_or_default().into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
