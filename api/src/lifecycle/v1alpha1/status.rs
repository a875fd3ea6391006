//! What a policy found, what it is about to do, and what stands in its way.
//!
//! It is written by the retention engine and read back by it after a restart, leniently: unknown fields are ignored,
//! and what may have more values one day is a string.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many of the next deletions a status names.
pub const NEXT: usize = 10;

/// The status of a policy of either kind, at most 16 KB (R50).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RetentionPolicyStatus {
    /// The generation of the policy that all of this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// A hash of what decides in the spec of that generation. If the API server shows another spec of the same generation
    /// later, nobody has edited it, and nothing is deleted (R5).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub observed_digest: Option<String>,
    /// A hash of what decides in the spec. Mode, rates and breaker are not part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub digest: Option<String>,
    /// The version at which the API server serves the target kind and the engine reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub served_version: Option<String>,
    /// All that was due until then has been handed on for deletion under this digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced_through: Option<Time>,
    /// When counts, rules, wouldDelete and next were counted. They are counted every half minute, and this time is
    /// written only together with something else that has changed: until then they still hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_at: Option<Time>,
    /// How many finished objects the policy selects, and how they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// For each rule, how many objects it matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub rules: Option<Vec<RuleStatus>>,
    /// How many objects Enforce would delete until then. In both modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_delete: Option<WouldDelete>,
    /// The ten earliest deletions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub next: Option<Vec<NextDeletion>>,
    /// What is due because of an edit and waits for two minutes before it is deleted. Absent: nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingObjects>,
    /// What waits for an acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trip: Option<Trip>,
    /// RBAC rules that the engine lacks, to paste into a `ClusterRole`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub missing_rules: Option<Vec<MissingRule>>,
    /// Ready, Enforcing, Tripped and Forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    pub conditions: Option<Vec<Condition>>,
}

/// Finished objects that a policy selects, by state. All are written, 0 included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// All finished objects.
    pub finished: u64,
    /// Those that are due.
    pub due: u64,
    /// Those that are kept for ever, or about which no policy decides.
    pub kept: u64,
    /// Those that an annotation holds.
    pub held: u64,
    /// Those that wait for their owner, or are left alone because they have one.
    pub owned: u64,
    /// Those that a guard delays.
    pub guarded: u64,
    /// Deactivated Workloads, which only `delete: Owner` removes.
    pub needs_owner: u64,
    /// Those without a label of `groupBy`.
    pub ungrouped: u64,
    /// Those of which nobody knows when they finished.
    pub no_finish_time: u64,
    /// Those that were deleted and that a finalizer still keeps.
    pub terminating: u64,
    /// Those that their own controller deletes earlier, by their own TTL, than a minimum or a hold allows.
    #[serde(rename = "nativeTTL")]
    pub native_ttl: u64,
    /// Names that were made again and again after a deletion.
    pub recreated: u64,
}

/// What one rule matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleStatus {
    /// Name of the rule.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Finished objects that it decides about.
    pub matched: u64,
    /// Those that are due.
    pub due: u64,
}

/// How many objects would be deleted until some instants from now on, each number including the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WouldDelete {
    /// At once.
    pub now: u64,
    /// Within an hour.
    pub hour: u64,
    /// Within a day.
    pub day: u64,
    /// Within a week.
    pub week: u64,
}

/// A deletion to come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NextDeletion {
    /// Namespace of the object.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name of the object.
    #[schemars(length(max = 253))]
    pub name: String,
    /// UID of the object.
    #[schemars(length(max = 64))]
    pub uid: String,
    /// The rule that decides about it.
    #[schemars(length(max = 63))]
    pub rule: String,
    /// Where the instant is from: Policy, Count, Annotation, `OwnTTL`, Maximum or Hold.
    #[schemars(length(max = 32))]
    pub source: String,
    /// What is deleted: Pods, Object or Owner.
    #[schemars(length(max = 32))]
    pub action: String,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// When the kind's own controller deletes it by the TTL in its own field, if that is earlier. No policy stops that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_at: Option<Time>,
}

/// Objects that an edit of a policy, of labels, annotations or a namespace made due, and that nobody has to acknowledge
/// (R41, R42).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WaitingObjects {
    /// How many wait.
    pub unexpected: u64,
    /// When the last of them may be deleted, unless more come until then than `breaker.maxCount` allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// In which namespaces, up to 10.
    #[schemars(length(max = 10))]
    pub namespaces: Vec<TrippedNamespace>,
}

/// Deletions that wait for an acknowledgement (R42, R43).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Trip {
    /// What the annotation `lifecycle.trainjob.dev/acknowledge-trip` has to say to allow them.
    #[schemars(length(min = 1, max = 128))]
    pub id: String,
    /// `MassDelete` or `ClockStep`.
    #[schemars(length(max = 32))]
    pub reason: String,
    /// How many objects became due that nobody expected.
    pub unexpected: u64,
    /// Of how many finished objects that the policy may delete.
    pub stock: u64,
    /// The namespaces that wait, up to 16. Absent: the whole policy waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub namespaces: Option<Vec<TrippedNamespace>>,
    /// When it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// A namespace whose deletions wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrippedNamespace {
    /// Name of the namespace.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How many objects in it became due that nobody expected.
    pub unexpected: u64,
}

/// A rule for a `ClusterRole` (R51).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MissingRule {
    /// API groups.
    #[schemars(length(max = 4))]
    pub api_groups: Vec<String>,
    /// Resources, by their plural names.
    #[schemars(length(max = 4))]
    pub resources: Vec<String>,
    /// Verbs.
    #[schemars(length(max = 8))]
    pub verbs: Vec<String>,
}

/// The types of a policy's conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyCondition {
    /// Its target is watched, and all facts are there.
    Ready,
    /// It deletes what is due.
    Enforcing,
    /// Something waits for an acknowledgement.
    Tripped,
    /// The engine lacks rights.
    Forbidden,
}

impl PolicyCondition {
    /// All of them, in the order in which they are written.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Enforcing, Self::Tripped, Self::Forbidden];

    /// As `type` has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Enforcing => "Enforcing",
            Self::Tripped => "Tripped",
            Self::Forbidden => "Forbidden",
        }
    }
}

/// The reasons of a policy's conditions (R50).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyReason {
    /// Ready: the message names skipped objects and limits that cross.
    Watching,
    /// Not ready: the first list is under way.
    Syncing,
    /// Not ready: the API server has no such kind.
    KindNotServed,
    /// Not ready: rights are missing.
    Forbidden,
    /// Not ready: the spec has a field or a value that this version does not know.
    NotUnderstood,
    /// Enforcing.
    Enforcing,
    /// Not enforcing: the mode is Audit.
    AuditMode,
    /// Not enforcing: it is not ready.
    NotReady,
    /// Not enforcing: all of it waits for an acknowledgement.
    Tripped,
    /// Not enforcing: the time is not known well enough.
    ClockSuspect,
    /// Tripped: more became due at once than the breaker allows.
    MassDelete,
    /// Tripped: the time has moved by minutes.
    ClockStep,
    /// Not tripped.
    WithinLimits,
    /// Forbidden: the message has a rule to paste.
    MissingRules,
    /// Not forbidden.
    Allowed,
}

impl PolicyReason {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Watching,
        Self::Syncing,
        Self::KindNotServed,
        Self::Forbidden,
        Self::NotUnderstood,
        Self::Enforcing,
        Self::AuditMode,
        Self::NotReady,
        Self::Tripped,
        Self::ClockSuspect,
        Self::MassDelete,
        Self::ClockStep,
        Self::WithinLimits,
        Self::MissingRules,
        Self::Allowed,
    ];

    /// As `reason` has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Watching => "Watching",
            Self::Syncing => "Syncing",
            Self::KindNotServed => "KindNotServed",
            Self::Forbidden => "Forbidden",
            Self::NotUnderstood => "NotUnderstood",
            Self::Enforcing => "Enforcing",
            Self::AuditMode => "AuditMode",
            Self::NotReady => "NotReady",
            Self::Tripped => "Tripped",
            Self::ClockSuspect => "ClockSuspect",
            Self::MassDelete => "MassDelete",
            Self::ClockStep => "ClockStep",
            Self::WithinLimits => "WithinLimits",
            Self::MissingRules => "MissingRules",
            Self::Allowed => "Allowed",
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_and_reason_is_documented() {
        let page = include_str!("../../../../docs/retention.md");
        let conditions = PolicyCondition::ALL.map(PolicyCondition::as_str);
        for name in conditions.into_iter().chain(PolicyReason::ALL.map(PolicyReason::as_str)) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
