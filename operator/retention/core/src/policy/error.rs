//! Why a policy cannot be parsed.

use crate::{
    finished::configured::{DescriptionError, PathError},
    operator::ConditionError,
    pattern::PatternError,
    selector::SelectorError,
};

/// Why a policy cannot be parsed. The schema refuses most of this, but a stored policy may be older than the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A selector is none.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// The description of what finished means is none.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// A path of a field is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A test of an object is none.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// A pattern for reasons is none.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// Kueue deactivates, and nobody else.
    #[error("Deactivated cannot be defined: say Succeeded, Failed or Other")]
    Deactivated,
    /// Of the core group there are kinds that must not be deleted by age, and kinds that never end.
    #[error("{0:?} of the core group cannot be a target: of that group only Pod can")]
    CoreKind(String),
    /// Neither is the kind known nor does the policy say what finished means.
    #[error(
        "only Job of batch, Pod of the core group, JobSet of jobset.x-k8s.io, TrainJob of trainer.kubeflow.org, Workload of kueue.x-k8s.io and TrainJobRecord of lifecycle.trainjob.dev can do without, spelled like this, and the group without a version"
    )]
    UnknownKind,
    /// There are none, or more than 32.
    #[error("there are {0} rules, not 1 to 32")]
    RuleCount(usize),
    /// A name is no DNS label.
    #[error("{0:?} is no name of a rule")]
    RuleName(String),
    /// Names tell rules apart.
    #[error("two rules are called {0:?}")]
    SameRuleName(String),
    /// What no rule fits would be kept for ever.
    #[error("the last rule has a match, so it may not fit everything")]
    LastRuleMatches,
    /// What no rule before it leaves over cannot be decided by it.
    #[error("only the last rule has no match: those after it would never be reached")]
    UnreachableRules,
    /// A rule that defers decides nothing.
    #[error("a rule that defers decides nothing, about Pods and owners neither")]
    DeferDecides,
    /// A list that is given has to say something.
    #[error("{0} is given and empty")]
    EmptyList(&'static str),
    /// A list has more entries than it may.
    #[error("{field} has more than {most} entries")]
    TooMany {
        /// The field.
        field: &'static str,
        /// How many it may have.
        most: usize,
    },
    /// A number is outside of its bounds.
    #[error("{value} is not within {least} and {most}")]
    OutOfBounds {
        /// The number.
        value: i64,
        /// The least that is within them.
        least: i64,
        /// The most.
        most: i64,
    },
    /// Of two ages the lesser is the greater.
    #[error("minimumAgeSeconds {minimum} is above maximumAgeSeconds {maximum}")]
    AgesCross {
        /// The minimum.
        minimum: i64,
        /// The maximum.
        maximum: i64,
    },
    /// Of two limits the lesser is the greater.
    #[error("minimumSeconds {minimum} is above maximumSeconds {maximum}")]
    LimitsCross {
        /// The minimum.
        minimum: i64,
        /// The maximum.
        maximum: i64,
    },
    /// Pods go before their object or with it.
    #[error("Pods would go after {pods} seconds, their object after {object} already")]
    PodsAfterObject {
        /// The TTL of the Pods.
        pods: i64,
        /// The TTL of the rule.
        object: i64,
    },
    /// The Pods of this kind cannot be found, or would be made again.
    #[error("Pods of this kind cannot be deleted before it")]
    PodsUnsupported,
}
