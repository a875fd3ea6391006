//! Names that clients, SDKs, Kueue and JobSet rely on.
//!
//! Each value is part of the observable behaviour of Kubeflow Trainer's controller manager, which
//! this operator replaces, or of JobSet; none may change without breaking somebody.

/// `spec.managedBy` of the TrainJobs this operator works on; absent means the same.
pub const MANAGED_BY: &str = "trainer.kubeflow.org/trainjob-controller";
/// The only other value of `spec.managedBy` that the schema admits.
pub const MANAGED_BY_MULTIKUEUE: &str = "kueue.x-k8s.io/multikueue";
/// Finalizer that earlier versions of Kubeflow Trainer put on runtimes in use, and this one removes.
pub const LEGACY_FINALIZER: &str = "trainer.kubeflow.org/resource-in-use";
/// Field manager of every object the operator creates.
pub const FIELD_MANAGER: &str = "trainer";
/// Reporting controller of every event.
pub const EVENT_REPORTER: &str = "trainer-trainjob-controller";

/// Label on a Job template that says which step of a TrainJob it is.
pub const ANCESTOR_LABEL: &str = "trainer.kubeflow.org/trainjob-ancestor-step";
/// Value of [`ANCESTOR_LABEL`] for the training step.
pub const ANCESTOR_TRAINER: &str = "trainer";
/// Value of [`ANCESTOR_LABEL`], and name of the container, for the step that fetches the dataset.
pub const DATASET_INITIALIZER: &str = "dataset-initializer";
/// Value of [`ANCESTOR_LABEL`], and name of the container, for the step that fetches the model.
pub const MODEL_INITIALIZER: &str = "model-initializer";
/// Name of the main container, and of the job that training processes meet at.
pub const NODE: &str = "node";
/// Port at which training processes meet.
pub const TRAINER_PORT: i32 = 29500;
/// Environment variable that tells an initializer where to fetch from.
pub const STORAGE_URI_ENV: &str = "STORAGE_URI";
/// Field path of a Pod's index within its Indexed Job.
pub const COMPLETION_INDEX_FIELD: &str =
    "metadata.annotations['batch.kubernetes.io/job-completion-index']";

/// Suffix of the name of the ConfigMap that freezes a TrainJob's runtime.
pub const SNAPSHOT_SUFFIX: &str = "-runtime-snapshot";
/// Data key of the runtime in the snapshot ConfigMap.
pub const SNAPSHOT_KEY: &str = "runtime";

/// Label that JobSet puts on every Pod it makes: the JobSet's (and so the TrainJob's) name.
pub const JOBSET_NAME_LABEL: &str = "jobset.sigs.k8s.io/jobset-name";
/// Label by which JobSet names the very JobSet a Pod belongs to.
pub const JOBSET_UID_LABEL: &str = "jobset.sigs.k8s.io/jobset-uid";
/// Label by which a job asks for a place in a queue of Kueue.
pub const KUEUE_QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// Label that Kueue puts on the copies of a job in MultiKueue worker clusters.
pub const MULTIKUEUE_ORIGIN_LABEL: &str = "kueue.x-k8s.io/multikueue-origin";

/// Annotation of a Namespace: the TTL of TrainJobs that are created there without one, in seconds.
pub const DEFAULT_TTL_ANNOTATION: &str =
    "lifecycle.trainjob.dev/default-ttl-seconds-after-finished";
/// Annotation of a Namespace: the longest TTL of TrainJobs that are created there, in seconds.
pub const MAXIMUM_TTL_ANNOTATION: &str =
    "lifecycle.trainjob.dev/maximum-ttl-seconds-after-finished";
/// Annotation of a Namespace: the deadline of TrainJobs that are created there without one, in seconds.
pub const DEFAULT_DEADLINE_ANNOTATION: &str =
    "lifecycle.trainjob.dev/default-active-deadline-seconds";
/// Annotation of a Namespace: the longest deadline of TrainJobs that are created there, in seconds.
pub const MAXIMUM_DEADLINE_ANNOTATION: &str =
    "lifecycle.trainjob.dev/maximum-active-deadline-seconds";

/// Annotation by which a request asks that TTL or deadline be removed: their names, with commas between them.
/// It counts in that one request, which it does not outlive.
pub const REMOVE_FIELDS_ANNOTATION: &str = "lifecycle.trainjob.dev/remove-fields";
