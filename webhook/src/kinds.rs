//! The kinds that are watched, by the names that readiness and metrics show.

use trainjob_api::v1alpha1::{CLUSTER_TRAINING_RUNTIME_KIND, TRAINING_RUNTIME_KIND};

/// The kind that namespaces are of.
pub const NAMESPACE_KIND: &str = "Namespace";

/// All of them.
pub const KINDS: [&str; 3] = [TRAINING_RUNTIME_KIND, CLUSTER_TRAINING_RUNTIME_KIND, NAMESPACE_KIND];
