//! Fields that are given say something.
//!
//! `null` and an empty list are read as if the field were absent, which mostly means *all*: a match with no outcomes fits
//! every outcome. The API server does not store either where this version of the schema refuses it, but another version of
//! the schema may have admitted it, with a meaning of its own.

use serde_json::Value;

use super::{error::StoredError, spec::PolicyKind};
use crate::metadata::Metadata;

/// The fields that may be empty, and say by that what leaving them out says.
const MAY_BE_EMPTY: [&str; 8] = [
    "selector",
    "namespaceSelector",
    "matchLabels",
    "matchExpressions",
    "values",
    "overrides",
    "holds",
    "breaker",
];

/// Checks what the API server gives every object.
pub(super) fn check_metadata(kind: PolicyKind, metadata: &Metadata) -> Result<(), StoredError> {
    let Metadata { name, namespace, uid, .. } = metadata;
    let namespace = match kind {
        PolicyKind::Namespaced => Some(("metadata.namespace", namespace)),
        PolicyKind::Cluster => None,
    };
    let mut required =
        [("metadata.name", name), ("metadata.uid", uid)].into_iter().chain(namespace);
    match required.find(|(_, value)| value.is_empty()) {
        Some((field, _)) => Err(StoredError::Nothing(field.to_owned())),
        None => Ok(()),
    }
}

/// Checks that the field of this path, which may be empty, says something in each of its parts.
pub(super) fn check(path: &str, value: &Value) -> Result<(), StoredError> {
    check_parts(path, true, value)
}

fn check_parts(path: &str, may_be_empty: bool, value: &Value) -> Result<(), StoredError> {
    let nothing = || Err(StoredError::Nothing(path.to_owned()));
    match value {
        Value::Null => nothing(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Array(items) if items.is_empty() && !may_be_empty => nothing(),
        Value::Object(fields) if fields.is_empty() && !may_be_empty => nothing(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| check_parts(&format!("{path}[{index}]"), false, item)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            let may_be_empty = MAY_BE_EMPTY.contains(&name.as_str());
            check_parts(&format!("{path}.{name}"), may_be_empty, value)
        }),
    }
}
