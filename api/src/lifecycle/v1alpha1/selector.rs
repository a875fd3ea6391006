//! Which objects, by their labels: what Kubernetes' own label selectors say, with operators that cannot be misspelt.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A label selector: all of its parts must hold. An empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Selector {
    /// Labels that must be there with these values, up to 16.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions on labels, up to 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub match_expressions: Vec<LabelExpression>,
}

/// A condition on one label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelExpression {
    /// Key of the label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// In: the label has one of the values. `NotIn`: it has none of them, or is not there. Exists, `DoesNotExist`: it is
    /// there, or not.
    pub operator: Operator,
    /// The values for In and `NotIn`, up to 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub values: Vec<String>,
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// It is one of the values.
    In,
    /// It is none of them, or there is no value.
    NotIn,
    /// There is a value.
    Exists,
    /// There is none.
    DoesNotExist,
}
