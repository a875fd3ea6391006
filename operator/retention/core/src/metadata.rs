//! What is read of the metadata of any object.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use trainjob_api::time::Timestamp;

use crate::instant;

/// The metadata of an object, as far as anything here depends on it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// The name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// The UID.
    pub uid: String,
    /// The version of the object.
    pub resource_version: String,
    /// How often its spec was written; 0 if the kind does not count that.
    pub generation: i64,
    /// When it was created.
    #[serde(deserialize_with = "instant::lenient")]
    pub creation_timestamp: Option<Timestamp>,
    /// When it is to be gone; there is one from the moment of its deletion.
    pub deletion_timestamp: Option<String>,
    /// Its labels.
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    /// Its owners.
    #[serde(deserialize_with = "or_default")]
    pub owner_references: Vec<OwnerReference>,
    /// Who wrote it when.
    #[serde(deserialize_with = "or_default")]
    pub managed_fields: Vec<ManagedFields>,
}

/// An owner of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it manages the object; one owner may.
    pub controller: Option<bool>,
}

/// What one writer wrote last.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedFields {
    /// By which subresource; empty for the object itself.
    pub subresource: String,
    /// When.
    #[serde(deserialize_with = "instant::lenient")]
    pub time: Option<Timestamp>,
}

impl Metadata {
    /// When it is to be gone, if it is being deleted. An instant that cannot be read is never reached.
    #[must_use]
    pub fn deleted_at(&self) -> Option<Timestamp> {
        let text = self.deletion_timestamp.as_deref()?;
        Some(Timestamp::parse(text).unwrap_or(Timestamp(i64::MAX)))
    }

    /// When the status was last written, else when anything was: not before the object finished, so it stands for the
    /// finish where that is not known (`docs/retention.md`, R12).
    #[must_use]
    pub fn last_written(&self) -> Option<Timestamp> {
        let of_status = self.managed_fields.iter().filter(|entry| entry.subresource == "status");
        let newest = of_status.filter_map(|entry| entry.time).max();
        newest.or_else(|| self.managed_fields.iter().filter_map(|entry| entry.time).max())
    }
}

/// Reads a field that may be null like one that is absent.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_newest_write_of_the_status_stands_for_a_finish_that_is_not_known() {
        let entry = |subresource: &str, second: u32| {
            json!({"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:status": {}}, "subresource": subresource,
                "time": format!("2026-11-22T06:30:{second:02}Z")})
        };
        let object = json!({"manager": "m", "time": "2026-11-22T06:30:59Z"});
        for (managed_fields, expected) in [
            (json!([entry("status", 5), entry("status", 7), object]), Some(7)),
            (json!([entry("scale", 5), object]), Some(59)),
            (json!([{"manager": "m", "subresource": "status"}, object]), Some(59)),
            (json!([{"manager": "m", "time": "0001-01-01T00:00:00Z"}]), None),
            (json!([{}]), None),
            (json!([]), None),
            (Value::Null, None),
        ] {
            let metadata = json!({"managedFields": managed_fields});
            let metadata: Metadata = serde_json::from_value(metadata).unwrap();
            let expected = expected.map(|second| Timestamp(1_795_329_000 + second));
            assert_eq!(metadata.last_written(), expected, "{managed_fields}");
        }
    }
}
