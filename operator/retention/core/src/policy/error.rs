//! Why a policy cannot be parsed.

use crate::{finished::configured::DescriptionError, selector::SelectorError};

/// Why a policy cannot be parsed. The schema refuses most of this, but a stored policy may be older than the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A selector is none.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// The description of what finished means is none.
    #[error("finished: {0}")]
    Description(#[from] DescriptionError),
    /// Neither is the kind known nor does the policy say what finished means.
    #[error("what finished means is not known for this kind, and not said")]
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
    /// A list that is given has to say something.
    #[error("{0} is given and empty")]
    EmptyList(&'static str),
    /// A list has more entries than it may.
    #[error("{0} has too many entries")]
    TooMany(&'static str),
    /// A number is outside of its bounds.
    #[error("{field} is {value}, not within its bounds")]
    OutOfBounds {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
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
