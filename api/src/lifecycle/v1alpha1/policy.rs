//! The two kinds of policy: for one namespace, and for many. They differ in two fields.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{finished::Finished, rule::Rule, selector::Selector, status::RetentionPolicyStatus};

/// The kinds whose ends are known without `finished`, as API group and kind (R9).
pub const BUILT_IN_KINDS: [(&str, &str); 6] = [
    ("batch", "Job"),
    ("", "Pod"),
    ("jobset.x-k8s.io", "JobSet"),
    ("trainer.kubeflow.org", "TrainJob"),
    ("kueue.x-k8s.io", "Workload"),
    ("lifecycle.trainjob.dev", "TrainJobRecord"),
];

/// The kinds whose Pods carry a label that says so, as API group and kind (R22).
pub const KINDS_WITH_PODS: [(&str, &str); 13] = [
    ("batch", "Job"),
    ("jobset.x-k8s.io", "JobSet"),
    ("trainer.kubeflow.org", "TrainJob"),
    ("kubeflow.org", "PyTorchJob"),
    ("kubeflow.org", "TFJob"),
    ("kubeflow.org", "MPIJob"),
    ("kubeflow.org", "XGBoostJob"),
    ("kubeflow.org", "PaddleJob"),
    ("kubeflow.org", "JAXJob"),
    ("argoproj.io", "Workflow"),
    ("tekton.dev", "TaskRun"),
    ("tekton.dev", "PipelineRun"),
    ("batch.volcano.sh", "Job"),
];

/// Which finished objects of one kind are deleted, and when.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "lifecycle.trainjob.dev",
    version = "v1alpha1",
    kind = "RetentionPolicy",
    plural = "retentionpolicies",
    singular = "retentionpolicy",
    shortname = "rp",
    namespaced,
    status = "RetentionPolicyStatus",
    derive = "PartialEq",
    // The crate makes it (`crd`).
    schema = "disabled",
    doc = "A policy for the namespace that it is in."
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetentionPolicySpec {
    /// The kind of object that this policy is about. It cannot be changed: make another policy for another kind.
    pub target: Target,
    /// Which objects of that kind. Absent or empty: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// Audit deletes nothing and shows in the status what Enforce would delete. Enforce deletes. Default Audit.
    #[serde(default)]
    pub mode: Mode,
    /// Who goes first where several policies of one scope select an object: the higher number, then the older policy,
    /// then the name. A `RetentionPolicy` goes before every `ClusterRetentionPolicy`. Default 0.
    #[serde(default)]
    pub priority: i32,
    /// What finished means for objects of this kind. Required unless the kind is Job, Pod, JobSet, TrainJob, Workload
    /// or `TrainJobRecord`; for these it replaces what is known of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<Finished>,
    /// What happens to a finished object: the first rule that matches it decides. Of 1 to 32 rules exactly the last
    /// has no match, so that every object has a rule.
    #[schemars(length(min = 1, max = 32))]
    pub rules: Vec<Rule>,
    /// What happens to an object that a controller owns. Skip leaves it alone. `AfterOwner` deletes it once its owner is
    /// finished or gone; the retention engine then needs the right to get objects of the owner's kind, which the chart
    /// gives it by `owners` of the target (`retention.targets`). Any deletes it regardless; a controller that still runs
    /// makes it anew. Default Skip.
    #[serde(default)]
    pub owned: Owned,
    /// What an object may say itself about its TTL.
    #[serde(default)]
    pub overrides: Overrides,
    /// What the annotation `lifecycle.trainjob.dev/hold-until` on an object may do.
    #[serde(default)]
    pub holds: Holds,
    /// How the dependents of a deleted object go. Foreground: the object stays visible until they are gone.
    /// Background: they follow it. Default Foreground.
    #[serde(default)]
    pub propagation: Propagation,
    /// How many objects this policy deletes in a second at most, 0 to 1000; 0 is no limit. Default 20.
    #[serde(default = "default_rate")]
    #[schemars(range(max = 1000))]
    pub deletes_per_second: u32,
    /// When deletions that nobody expected wait for an acknowledgement.
    #[serde(default)]
    pub breaker: Breaker,
}

/// Which finished objects of one kind are deleted in which namespaces, and when.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "lifecycle.trainjob.dev",
    version = "v1alpha1",
    kind = "ClusterRetentionPolicy",
    plural = "clusterretentionpolicies",
    singular = "clusterretentionpolicy",
    shortname = "crp",
    status = "RetentionPolicyStatus",
    derive = "PartialEq",
    schema = "disabled",
    doc = "A policy for all namespaces, or for selected ones."
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterRetentionPolicySpec {
    /// What policies of both kinds have.
    #[serde(flatten)]
    pub policy: RetentionPolicySpec,
    /// Which namespaces. Absent or empty: all but kube-system, kube-public, kube-node-lease and that of the retention
    /// engine. One of these is selected by its name, with a value of the label `kubernetes.io/metadata.name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<Selector>,
    /// Bounds for the values and holds of all objects that this policy selects, whichever policy decides about them.
    /// They count while the policy enforces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

/// A kind of object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// The API group, without a version: that is discovered. Empty for the core group, of which only Pod can be a
    /// target.
    #[schemars(length(max = 253))]
    pub api_group: String,
    /// The kind, such as Job.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
}

/// Whether a policy deletes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// It shows what it would delete.
    #[default]
    Audit,
    /// It deletes.
    Enforce,
}

/// What happens to an object with a controller owner (R23, R24).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Owned {
    /// It is left alone.
    #[default]
    Skip,
    /// It is deleted once its owner is finished or gone.
    AfterOwner,
    /// It is deleted whatever its owner does.
    Any,
}

/// How dependents go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Propagation {
    /// Before the object.
    #[default]
    Foreground,
    /// After it.
    Background,
}

/// What an object may say itself (R30).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Overrides {
    /// Whether the annotation `lifecycle.trainjob.dev/ttl-seconds-after-finished` on an object comes before all else.
    /// Default false.
    #[serde(default)]
    pub annotation: bool,
    /// Whether the TTL field that the kind has itself comes before the rules: Respect or Ignore. The kind's own
    /// controller acts on that field in either case. Default Respect.
    #[serde(default, rename = "ownTTL")]
    pub own_ttl: OwnTtl,
}

/// Whether the kind's own TTL field counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OwnTtl {
    /// It comes before the rules.
    #[default]
    Respect,
    /// It is nothing to this policy.
    Ignore,
}

/// How far holds reach (R32).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Holds {
    /// For how many seconds beyond the instant at which it is due a hold can keep an object, at most; 0: holds have
    /// no effect. Default 2592000, which is 30 days.
    #[serde(default = "default_hold")]
    #[schemars(range(max = 2_147_483_647))]
    pub maximum_seconds: u32,
}

impl Default for Holds {
    fn default() -> Self {
        Self { maximum_seconds: default_hold() }
    }
}

/// Bounds for values and holds (R30, R32).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// No object is deleted earlier than so many seconds after its start, whatever a rule, an annotation or its own
    /// TTL says. Of several policies the largest counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 2_147_483_647))]
    pub minimum_seconds: Option<u32>,
    /// An object with a value, even one that is kept for ever, is due at most so many seconds after its start. Of
    /// several policies the smallest counts. An object about which no policy decides stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 2_147_483_647))]
    pub maximum_seconds: Option<u32>,
    /// For how many seconds beyond the instant at which it is due a hold can keep an object, at most. Of several
    /// policies the smallest counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 2_147_483_647))]
    pub maximum_hold_seconds: Option<u32>,
}

/// When deletions wait for an acknowledgement (R42).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Breaker {
    /// How many objects may become due at once by an edit. If it is more, nothing is deleted before the annotation
    /// `lifecycle.trainjob.dev/acknowledge-trip` on this policy names the trip in its status. At least 1, default 50.
    #[serde(default = "default_count")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub max_count: u32,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { max_count: default_count() }
    }
}

const fn default_rate() -> u32 {
    20
}

const fn default_hold() -> u32 {
    2_592_000
}

const fn default_count() -> u32 {
    50
}
