//! The parts of a spec, each read strictly by the types of the API.
//!
//! The two fields that only a cluster policy has are read apart from the others. So an error names the field that it is
//! about: in fields that are flattened into others, no path is known.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use trainjob_api::lifecycle::v1alpha1::{
    policy::{Limits, RetentionPolicySpec},
    selector::Selector,
};

use super::error::StoredError;

/// The kinds of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyKind {
    /// A `RetentionPolicy`.
    Namespaced,
    /// A `ClusterRetentionPolicy`.
    Cluster,
}

/// The spec of a policy of either kind.
#[derive(Debug)]
pub(super) struct Spec {
    /// What both kinds have.
    pub(super) policy: RetentionPolicySpec,
    /// Which namespaces; all if that is not said.
    pub(super) namespaces: Selector,
    /// Bounds; none if there are none.
    pub(super) limits: Limits,
}

/// Reads a spec.
pub(super) fn read(kind: PolicyKind, spec: &Value) -> Result<Spec, StoredError> {
    let mut spec = spec.clone();
    let (namespaces, limits) = match (kind, spec.as_object_mut()) {
        (PolicyKind::Cluster, Some(fields)) => {
            (fields.remove("namespaceSelector"), fields.remove("limits"))
        }
        (PolicyKind::Namespaced, _) | (PolicyKind::Cluster, None) => (None, None),
    };
    Ok(Spec {
        policy: strictly("spec", &spec)?,
        namespaces: optional("spec.namespaceSelector", namespaces)?,
        limits: optional("spec.limits", limits)?,
    })
}

fn optional<T: DeserializeOwned + Serialize + Default>(
    field: &str,
    value: Option<Value>,
) -> Result<T, StoredError> {
    value.map_or_else(|| Ok(T::default()), |value| strictly(field, &value))
}

/// Reads a value of the field of this path.
///
/// The types of the API take a list for an object whose fields have its items for values. A policy must not be written
/// like that, so what was read is written again and compared.
pub(super) fn strictly<T: DeserializeOwned + Serialize>(
    field: &str,
    value: &Value,
) -> Result<T, StoredError> {
    let unknown = |field, source| StoredError::Unknown { field, source };
    let read: T = serde_path_to_error::deserialize(value).map_err(|error| {
        let inner = error.path().to_string();
        // The path of the whole is a dot.
        let field = if inner == "." { field.to_owned() } else { format!("{field}.{inner}") };
        unknown(field, error.into_inner())
    })?;
    let written =
        serde_json::to_value(&read).map_err(|source| unknown(field.to_owned(), source))?;
    match list_for_object(field, value, &written) {
        Some(list) => Err(StoredError::List(list)),
        None => Ok(read),
    }
}

/// The path of a list that was read as an object, if there is one.
fn list_for_object(path: &str, stored: &Value, written: &Value) -> Option<String> {
    match (stored, written) {
        (Value::Array(_), Value::Object(_)) => Some(path.to_owned()),
        (Value::Array(stored), Value::Array(written)) => {
            let mut items = stored.iter().zip(written).enumerate();
            items.find_map(|(index, (stored, written))| {
                list_for_object(&format!("{path}[{index}]"), stored, written)
            })
        }
        (Value::Object(stored), written) => stored.iter().find_map(|(name, stored)| {
            list_for_object(&format!("{path}.{name}"), stored, written.get(name)?)
        }),
        _ => None,
    }
}
