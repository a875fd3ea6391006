//! `lifecycle.trainjob.dev/v1alpha1`: retention policies, which say when finished objects of any kind are deleted
//! (`docs/retention.md`), and the records of what the Pods of TrainJobs used (`docs/accounting.md`).
//!
//! * [`policy`]: the two kinds, `RetentionPolicy` and `ClusterRetentionPolicy`, and what both have.
//! * [`rule`]: which finished objects a rule is about, and what happens to them.
//! * [`finished`]: what finished means for a kind that is not known.
//! * [`selector`]: which objects, by their labels.
//! * [`hold`]: the annotation that holds the deletion of an object.
//! * [`status`]: what a policy found, and what it is about to do.
//! * [`record`]: what the Pods of a TrainJob used and how they ended; [`record_words`]: the words in it.
//!
//! The doc comments of the fields are what `kubectl explain` shows.
//!
//! The spec of a policy is read strictly, unlike all else in this crate: a field or a value that this version does not know is an
//! error. It may be the very one that keeps objects, as after a downgrade. A policy that cannot be read deletes
//! nothing.

pub mod finished;
pub mod hold;
pub mod policy;
pub mod record;
pub mod record_words;
pub mod rule;
pub mod selector;
pub mod status;

/// The API group.
pub const GROUP: &str = "lifecycle.trainjob.dev";
/// The version.
pub const VERSION: &str = "v1alpha1";
/// Both, as `apiVersion` has them.
pub const API_VERSION: &str = "lifecycle.trainjob.dev/v1alpha1";

/// Kind of a policy for one namespace.
pub const RETENTION_POLICY_KIND: &str = "RetentionPolicy";
/// Kind of a policy for many namespaces.
pub const CLUSTER_RETENTION_POLICY_KIND: &str = "ClusterRetentionPolicy";
/// Kind of the record that the accounting keeps of a TrainJob.
pub const TRAIN_JOB_RECORD_KIND: &str = "TrainJobRecord";

/// Annotation on an object: its own TTL, in seconds after its start (R30).
pub const TTL_ANNOTATION: &str = "lifecycle.trainjob.dev/ttl-seconds-after-finished";
/// Annotation on an object: until when it is held, an RFC 3339 time (R32).
pub const HOLD_ANNOTATION: &str = "lifecycle.trainjob.dev/hold-until";
/// Annotation on a policy: the id of the trip that somebody has looked at and allows (R43).
pub const ACKNOWLEDGE_ANNOTATION: &str = "lifecycle.trainjob.dev/acknowledge-trip";

/// Finalizer on a Pod that is not counted yet (AM1).
pub const ACCOUNTING_FINALIZER: &str = "lifecycle.trainjob.dev/accounting";
/// Label on a Pod that is accounted: the name of its TrainJob (AM1).
pub const TRAIN_JOB_NAME_LABEL: &str = "lifecycle.trainjob.dev/trainjob-name";
/// Label on a Pod that is accounted: the UID of its TrainJob (AM1).
pub const TRAIN_JOB_UID_LABEL: &str = "lifecycle.trainjob.dev/trainjob-uid";
/// Annotation on a Pod that is counted and released: its own UID (AG2).
pub const ACCOUNTED_ANNOTATION: &str = "lifecycle.trainjob.dev/accounted";
