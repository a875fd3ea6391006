//! What finished means, for kinds whose ends are not built in (R6, R9, R13).
//!
//! A path names fields from the root of the object with dots between them, such as `status.state.phase`. There are no
//! indices: what is in lists, other than conditions, decides nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selector::Operator;

/// When an object is finished, how it ended, why and when.
///
/// All of `requires` must hold. Then the first of `conditions` that holds decides, else `phase`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finished {
    /// What must hold before an object counts as finished at all, up to 8. Such as: `status.completionTime` Exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 8))]
    pub requires: Vec<Requirement>,
    /// Conditions in `status.conditions` that mean an end, up to 8. The first of this list that holds decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 8))]
    pub conditions: Vec<FinishedCondition>,
    /// A field whose value decides if no condition does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Path of the reason, such as `status.reason`. Absent, or without a value there: the reason of the condition, or the
    /// value of the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub reason_path: Option<String>,
    /// Path of the finish time, such as `status.endTime`. Absent, or without a usable time there: the `lastTransitionTime`
    /// of the condition, else the newest time in `managedFields`, which is not earlier than the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub time_path: Option<String>,
    /// Where the kind has a TTL of its own, in seconds after the end, by which its controller deletes the object
    /// itself. The first of up to 4 fields counts whose outcomes fit and that is there. Leave it out for a field that
    /// deletes anything else.
    #[serde(default, rename = "ownTTL", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 4))]
    pub own_ttl: Vec<OwnTtlField>,
    /// What delays a deletion although the object is finished, such as an archive that has not stored it yet. Up to 4.
    /// Only a `maximumSeconds` in the limits of a cluster policy overrules them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 4))]
    pub guards: Vec<Guard>,
}

/// A condition that means an end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FinishedCondition {
    /// Type of the condition.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub kind: String,
    /// The status at which it holds: True or False. Default True.
    #[serde(default)]
    pub status: ConditionStatus,
    /// Reasons at which it holds, up to 16; one that ends in * stands for all that begin so. Absent: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    pub reasons: Vec<String>,
    /// How the object ended: Succeeded, Failed or Other.
    pub outcome: Outcome,
}

/// The status of a condition. `Unknown` is no end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It is so.
    #[default]
    True,
    /// It is not so, and will not be.
    False,
}

/// How an object ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Outcome {
    /// It did what it should.
    Succeeded,
    /// It did not.
    Failed,
    /// Kueue has deactivated the Workload, and its job waits for somebody to activate it again. Only built in.
    Deactivated,
    /// Neither, such as a job that somebody stopped.
    Other,
}

/// A field whose value means an end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Phase {
    /// Path of the field, such as `status.phase`.
    #[schemars(length(min = 1, max = 253))]
    pub path: String,
    /// Which values mean which end. An object with any other value is not finished, unless there is otherwise.
    #[serde(default, skip_serializing_if = "PhaseOutcomes::is_empty")]
    pub outcomes: PhaseOutcomes,
    /// The outcome for every other value, and for none: Succeeded, Failed or Other. It needs requires, which then says
    /// alone when an object is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Outcome>,
}

/// Which values of a phase mean which end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct PhaseOutcomes {
    /// Values of objects that succeeded, up to 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    pub succeeded: Vec<String>,
    /// Values of objects that failed, up to 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    pub failed: Vec<String>,
    /// Values of objects that ended otherwise, up to 16, such as those that somebody stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    pub other: Vec<String>,
}

impl PhaseOutcomes {
    /// Whether no value means an end.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.succeeded.is_empty() && self.failed.is_empty() && self.other.is_empty()
    }
}

/// A TTL field of the kind itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OwnTtlField {
    /// Path of the field, such as `spec.ttlSecondsAfterFinished`. Its value is a number of seconds.
    #[schemars(length(min = 1, max = 253))]
    pub path: String,
    /// For which outcomes it is. Absent: for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 3))]
    pub outcomes: Vec<Outcome>,
}

/// What delays a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guard {
    /// Name of the guard, a DNS label that no other guard of the policy has.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The object waits while all of these hold. 1 to 8.
    #[serde(rename = "while")]
    #[schemars(length(min = 1, max = 8))]
    pub holding: Vec<Requirement>,
}

/// One test of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requirement {
    /// What is tested.
    #[serde(flatten)]
    pub subject: Subject,
    /// In: the value is one of the values. `NotIn`: it is none of them, or there is none. Exists, `DoesNotExist`: there is
    /// a value that is neither null nor an empty string, or not.
    pub operator: Operator,
    /// The values for In and `NotIn`, up to 16. Numbers, true and false are compared as JSON has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub values: Vec<String>,
}

/// What is tested: exactly one of these.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// A field, by its path, such as `status.completionTime`.
    Path(String),
    /// A label, by its key.
    Label(String),
    /// An annotation, by its key. One that ends in * stands for all annotations whose keys begin so: In and Exists ask
    /// for at least one of them, `NotIn` and `DoesNotExist` for none.
    Annotation(String),
}
