//! What a value has to be, by the operators of label selectors.
//!
//! There are two wishes, each of which can be negated: that a value is one of some, and that there is one. So an absent
//! value fits `NotIn`.

use std::collections::BTreeSet;

/// An operator of label selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The value is one of some.
    In,
    /// It is not, or there is none.
    NotIn,
    /// There is a value.
    Exists,
    /// There is none.
    DoesNotExist,
}

/// What a value has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub(crate) wanted: Wanted,
    /// Whether just that must not be.
    pub(crate) negated: bool,
}

/// What a condition asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// One of these values.
    OneOf(BTreeSet<Box<str>>),
    /// Any value.
    Any,
}

/// Why operator and values are no condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// There is nothing to compare with.
    #[error("{0:?} needs values")]
    NoValues(Operator),
    /// There is nothing to compare.
    #[error("{0:?} takes no values")]
    SuperfluousValues(Operator),
}

impl Condition {
    /// A condition of an operator and its values.
    ///
    /// # Errors
    ///
    /// If the operator needs values and there are none, or the other way round.
    pub fn new<'a>(
        operator: Operator,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ConditionError> {
        let values: BTreeSet<Box<str>> = values.into_iter().map(Into::into).collect();
        let negated = matches!(operator, Operator::NotIn | Operator::DoesNotExist);
        let wanted = match (operator, values.is_empty()) {
            (Operator::In | Operator::NotIn, false) => Wanted::OneOf(values),
            (Operator::Exists | Operator::DoesNotExist, true) => Wanted::Any,
            (Operator::In | Operator::NotIn, true) => {
                return Err(ConditionError::NoValues(operator));
            }
            (Operator::Exists | Operator::DoesNotExist, false) => {
                return Err(ConditionError::SuperfluousValues(operator));
            }
        };
        Ok(Self { wanted, negated })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_has_the_values_that_it_needs() {
        use Operator::{DoesNotExist, Exists, In, NotIn};
        for (operator, values, expected) in [
            (In, vec!["a"], Ok(())),
            (NotIn, vec!["a", "b"], Ok(())),
            (Exists, vec![], Ok(())),
            (DoesNotExist, vec![], Ok(())),
            (In, vec![], Err(ConditionError::NoValues(In))),
            (NotIn, vec![], Err(ConditionError::NoValues(NotIn))),
            (Exists, vec!["a"], Err(ConditionError::SuperfluousValues(Exists))),
            (DoesNotExist, vec![""], Err(ConditionError::SuperfluousValues(DoesNotExist))),
        ] {
            let condition = Condition::new(operator, values.clone()).map(|_| ());
            assert_eq!(condition, expected, "{operator:?} {values:?}");
        }
    }
}
