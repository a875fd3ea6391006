//! Label selectors.

use trainjob_api::lifecycle::v1alpha1::selector as api;

use super::error::{At, StoredError};
use crate::{
    operator::Operator,
    selector::{Requirement, Selector},
};

/// The selector in the field of this path.
pub(super) fn selector(field: &str, selector: &api::Selector) -> Result<Selector, StoredError> {
    let labels = selector.match_labels.iter().map(|(key, value)| {
        Requirement::new(key, Operator::In, &[value]).at(&format!("{field}.matchLabels"))
    });
    let expressions = selector.match_expressions.iter().enumerate();
    let expressions = expressions.map(|(index, expression)| {
        let api::LabelExpression { key, operator, values } = expression;
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        Requirement::new(key, self::operator(*operator), &values)
            .at(&format!("{field}.matchExpressions[{index}]"))
    });
    labels.chain(expressions).collect()
}

/// An operator of selectors, and of the tests in `finished`.
pub(super) const fn operator(operator: api::Operator) -> Operator {
    match operator {
        api::Operator::In => Operator::In,
        api::Operator::NotIn => Operator::NotIn,
        api::Operator::Exists => Operator::Exists,
        api::Operator::DoesNotExist => Operator::DoesNotExist,
    }
}
