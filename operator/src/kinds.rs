//! The kinds that are watched, by the names that readiness, metrics and logs show.

use trainjob_api::{
    constants::{CLUSTER_TRAINING_RUNTIME_KIND, TRAIN_JOB_KIND, TRAINING_RUNTIME_KIND},
    jobset,
};

/// Names of the kinds that are watched, as readiness shows them.
pub const KINDS: [&str; 6] = [
    TRAIN_JOB_KIND,
    jobset::KIND,
    TRAINING_RUNTIME_KIND,
    CLUSTER_TRAINING_RUNTIME_KIND,
    COSCHEDULING_KIND,
    VOLCANO_KIND,
];

/// There are two kinds of the name PodGroup.
pub const COSCHEDULING_KIND: &str = "PodGroup of scheduler-plugins";
/// See [`COSCHEDULING_KIND`].
pub const VOLCANO_KIND: &str = "PodGroup of Volcano";
