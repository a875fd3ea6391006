//! Who owns which field: `metadata.managedFields`, as far as a rule asks for it.
//!
//! The API server works them out before it asks a webhook, from the request as it was sent. Whatever
//! webhooks change afterwards, they keep saying what the request itself gave and took.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, de::IgnoredAny};
use trainjob_api::time::Timestamp;

const APPLY: &str = "Apply";

/// One manager of fields, and which of the fields that matter here it owns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manager {
    /// Its name.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// The subresource that it wrote; empty for the object itself.
    pub subresource: String,
    /// When it last wrote.
    time: Option<Time>,
    #[serde(rename = "fieldsV1")]
    fields: Fields,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Fields {
    #[serde(rename = "f:spec")]
    spec: Spec,
    #[serde(rename = "f:metadata")]
    metadata: Metadata,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "f:activeDeadlineSeconds")]
    deadline: Option<Owned>,
    #[serde(rename = "f:ttlSecondsAfterFinished")]
    ttl: Option<Owned>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Metadata {
    #[serde(rename = "f:annotations")]
    annotations: Annotations,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "f:lifecycle.trainjob.dev/remove-fields")]
    remove_fields: Option<Owned>,
}

/// What stands beside the name of a field says no more than that it is owned.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "IgnoredAny")]
struct Owned;

impl From<IgnoredAny> for Owned {
    fn from(IgnoredAny: IgnoredAny) -> Self {
        Self
    }
}

impl Manager {
    /// Whether this is what `name` has applied of the object itself.
    pub(super) fn is_apply_of(&self, name: &str) -> bool {
        self.manager == name && self.operation == APPLY && self.subresource.is_empty()
    }

    /// Whether this is what `name` has written of the object itself in other ways.
    pub(super) fn is_update_of(&self, name: &str) -> bool {
        self.manager == name && self.operation != APPLY && self.subresource.is_empty()
    }

    /// Whether both are of the same manager, who did the same to the same.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        (&self.manager, &self.operation, &self.subresource)
            == (&other.manager, &other.operation, &other.subresource)
    }

    pub(super) const fn owns_deadline(&self) -> bool {
        self.fields.spec.deadline.is_some()
    }

    pub(super) const fn owns_ttl(&self) -> bool {
        self.fields.spec.ttl.is_some()
    }

    pub(super) const fn owns_remove_fields(&self) -> bool {
        self.fields.metadata.annotations.remove_fields.is_some()
    }

    /// When it last wrote.
    pub(super) fn written_at(&self) -> Option<Timestamp> {
        self.time.as_ref().map(Timestamp::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trainjob_api::constants::REMOVE_FIELDS_ANNOTATION;

    use super::*;

    #[test]
    fn managed_fields_are_read_as_far_as_rules_ask_for_them() {
        let managers: Vec<Manager> = serde_json::from_value(json!([
            {
                "manager": "kubectl", "operation": "Apply", "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "time": "2026-01-04T10:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {"f:annotations": {format!("f:{REMOVE_FIELDS_ANNOTATION}"): {}}},
                    "f:spec": {".": {}, "f:ttlSecondsAfterFinished": {}, "f:trainer": {"f:env": {}}},
                },
            },
            {"manager": "trainer", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
            {"manager": "old", "operation": "Update", "fieldsV1": {"f:spec": {"f:activeDeadlineSeconds": {}}}},
        ]))
        .unwrap();
        let [apply, status, update] = managers.as_slice() else { panic!("{managers:?}") };
        assert!(apply.owns_ttl() && apply.owns_remove_fields() && !apply.owns_deadline());
        assert!(apply.is_apply_of("kubectl") && !apply.is_apply_of("old"));
        assert_eq!(apply.written_at(), Some(Timestamp(1_767_520_800)));
        assert!(!status.is_update_of("trainer") && !status.owns_ttl());
        assert!(update.owns_deadline() && update.is_update_of("old") && !update.is_apply_of("old"));
        assert_eq!(update.written_at(), None);
    }
}
