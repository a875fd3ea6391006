//! The key of an object.

use std::{fmt, ops::Deref, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use smol_str::SmolStr;

/// Namespace and name of an object; a TrainJob and its JobSet share theirs.
///
/// Caches, queue and timers all know a job by its key, so a copy of one is a pointer. With its count it points to forty bytes, unless the
/// name is longer than twenty-three.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(triomphe::Arc<Named>);

/// What an [`ObjectKey`] consists of.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named {
    /// The namespace.
    pub namespace: Namespace,
    /// The name.
    pub name: SmolStr,
}

/// A namespace that keys have in common: half as long as a pointer to a text.
pub type Namespace = triomphe::Arc<Arc<str>>;

impl ObjectKey {
    /// The key of the object with this name in this namespace.
    #[must_use]
    pub fn new(namespace: impl Into<Arc<str>>, name: impl AsRef<str>) -> Self {
        Self::within(Namespace::new(namespace.into()), name)
    }

    /// The key of the object with this name in a namespace that others have, too.
    #[must_use]
    pub fn within(namespace: Namespace, name: impl AsRef<str>) -> Self {
        Self(triomphe::Arc::new(Named { namespace, name: SmolStr::new(name) }))
    }

    /// The key in an object's metadata; empty parts where the metadata has none.
    #[must_use]
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self::new(
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
        )
    }
}

impl Deref for ObjectKey {
    type Target = Named;

    fn deref(&self) -> &Named {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_a_pointer_to_thirty_two_bytes() {
        assert_eq!((size_of::<ObjectKey>(), size_of::<Named>()), (8, 32));
    }
}
