//! What the annotations of a namespace say of TTL and deadline.

use std::collections::BTreeMap;

use trainjob_api::constants::{
    DEFAULT_DEADLINE_ANNOTATION, DEFAULT_TTL_ANNOTATION, MAXIMUM_DEADLINE_ANNOTATION,
    MAXIMUM_TTL_ANNOTATION,
};

use crate::admission::lifecycle::Field;

/// The largest value of a limit: that of a TTL, 68 years.
const LARGEST: i64 = i32::MAX as i64;
/// How much is kept, and repeated in messages, of an annotation that is no number.
pub(super) const SHOWN: usize = 50;

/// What the annotations of a namespace set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceLimits {
    pub(super) ttl: Annotated,
    pub(super) deadline: Annotated,
}

/// What the annotations of a namespace set for one field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Annotated {
    pub(super) default: Option<Amount>,
    pub(super) maximum: Option<Amount>,
}

/// A number of seconds, or the text of an annotation that is none.
pub(super) type Amount = Result<i64, String>;

impl Field {
    pub(super) const fn default_annotation(self) -> &'static str {
        match self {
            Self::Deadline => DEFAULT_DEADLINE_ANNOTATION,
            Self::Ttl => DEFAULT_TTL_ANNOTATION,
        }
    }

    pub(super) const fn maximum_annotation(self) -> &'static str {
        match self {
            Self::Deadline => MAXIMUM_DEADLINE_ANNOTATION,
            Self::Ttl => MAXIMUM_TTL_ANNOTATION,
        }
    }

    /// The least value of a limit.
    pub(super) const fn least(self) -> i64 {
        match self {
            Self::Deadline => 1,
            Self::Ttl => 0,
        }
    }

    pub(super) fn expected(self) -> String {
        format!("a whole number of seconds between {} and {LARGEST}", self.least())
    }

    fn amount(self, text: &str) -> Amount {
        let seconds = text.parse().ok();
        let seconds = seconds.filter(|seconds| (self.least()..=LARGEST).contains(seconds));
        seconds.ok_or_else(|| text.chars().take(SHOWN).collect())
    }
}

impl NamespaceLimits {
    /// The limits in the annotations of a namespace; `None` if it has none of them.
    #[must_use]
    pub fn of(annotations: &BTreeMap<String, String>) -> Option<Self> {
        let amount = |field: Field, name| annotations.get(name).map(|text| field.amount(text));
        let annotated = |field: Field| Annotated {
            default: amount(field, field.default_annotation()),
            maximum: amount(field, field.maximum_annotation()),
        };
        let limits = Self { ttl: annotated(Field::Ttl), deadline: annotated(Field::Deadline) };
        (limits != Self::default()).then_some(limits)
    }
}
