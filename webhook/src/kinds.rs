//! The kinds that are watched, by the names that readiness and metrics show.

use trainjob_api::v1alpha1::{CLUSTER_TRAINING_RUNTIME_KIND, TRAINING_RUNTIME_KIND};

/// Both of them.
pub const KINDS: [&str; 2] = [TRAINING_RUNTIME_KIND, CLUSTER_TRAINING_RUNTIME_KIND];
