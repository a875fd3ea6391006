//! A rule of a policy: which finished objects it is about, and what happens to them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{finished::Outcome, selector::Selector};

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// Name of the rule, a DNS label that no other rule of the policy has. Status and events show it.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Which finished objects the rule is about. The last rule has none and is about all that are left.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Match>,
    /// What happens to them: exactly one of `ttlSecondsAfterFinished`, keep, defer and `keepLast`.
    pub action: Action,
    /// Deletes their Pods earlier than the objects. For kinds whose Pods carry a label: Job, JobSet, TrainJob, the
    /// kinds of `kubeflow.org`, Argo Workflow, Tekton `TaskRun` and `PipelineRun`, Volcano Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<RulePods>,
    /// What is deleted: the Object, or the Owner that controls it. The owner of a Workload is the job that it queues.
    /// Default Object.
    #[serde(default)]
    pub delete: DeleteTarget,
}

/// Which finished objects a rule is about: all that is given must fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Match {
    /// How they ended, one of: Succeeded, Failed, Other, and Deactivated for Workloads that Kueue has deactivated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 4))]
    pub outcomes: Vec<Outcome>,
    /// Why they ended, one of up to 16 reasons. One that ends in * stands for all that begin so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    pub reasons: Vec<String>,
    /// Their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Selector>,
}

/// What happens to objects: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// They are deleted so many seconds after their start, 0 to 2147483647. The start is the instant at which they
    /// finished, or at which they were created if that is later.
    TtlSecondsAfterFinished(u32),
    /// They are kept for ever, or for as long as the limits of cluster policies allow. The only value is true.
    Keep(Yes),
    /// This policy says nothing of them: the next policy that selects them decides. The only value is true.
    Defer(Yes),
    /// The newest of each group are kept.
    KeepLast(KeepLast),
}

/// The newest of each group are kept (R21).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeepLast {
    /// How many of each group are kept, 1 to 10000: those that finished last. Objects that are held or that cannot be
    /// deleted for another reason take no place.
    #[schemars(range(min = 1, max = 10_000))]
    pub count: u32,
    /// Keys of up to 4 labels, by whose values objects are grouped within a namespace. Absent: each namespace is one
    /// group. An object without one of the labels is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 4))]
    pub group_by: Vec<String>,
    /// No object of a group is deleted earlier than so many seconds after its start. Default 0.
    #[serde(default)]
    #[schemars(range(max = 2_147_483_647))]
    pub minimum_age_seconds: u32,
    /// Every object of a group is deleted so many seconds after its start, even the newest. Absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 2_147_483_647))]
    pub maximum_age_seconds: Option<u32>,
}

/// When Pods go before their object (R22).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RulePods {
    /// How many seconds after the start of the object its Pods are deleted; not later than the object.
    #[schemars(range(max = 2_147_483_647))]
    pub ttl_seconds_after_finished: u32,
    /// Which of its Pods: Terminal for those that succeeded or failed, All for those that still run, too. Default
    /// Terminal.
    #[serde(default)]
    pub phases: PodPhases,
}

/// Which Pods of a finished object are deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PodPhases {
    /// Those that succeeded or failed.
    #[default]
    Terminal,
    /// All of them.
    All,
}

/// What a rule deletes (R25).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DeleteTarget {
    /// The object that the rule matches.
    #[default]
    Object,
    /// The owner that controls it.
    Owner,
}

/// `true`. There is nothing else to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
pub struct Yes;

impl TryFrom<bool> for Yes {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value { Ok(Self) } else { Err("the only value is true") }
    }
}

impl From<Yes> for bool {
    fn from(_: Yes) -> Self {
        true
    }
}

impl JsonSchema for Yes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Yes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "boolean"})
    }
}
