//! What is read of a policy to write its status.

use serde::Deserialize;
use trainjob_api::lifecycle::v1alpha1::status::RetentionPolicyStatus;
use trainjob_retention_core::metadata::Metadata;

/// A policy, as far as its status is concerned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeenPolicy {
    /// Which of all policies that ever had this name.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    /// How often its spec was written.
    pub generation: i64,
    /// Its status.
    pub status: RetentionPolicyStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Said {
    status: Option<RetentionPolicyStatus>,
}

/// The version of a policy.
pub(super) fn version(text: &str) -> String {
    let Named { metadata } = serde_json::from_str(text).unwrap_or_default();
    metadata.resource_version
}

impl SeenPolicy {
    /// Reads a policy. A status that cannot be read counts as none, and is written anew.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let Named { metadata } = serde_json::from_str(text).unwrap_or_default();
        let Said { status } = serde_json::from_str(text).unwrap_or_default();
        Self {
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            status: status.unwrap_or_default(),
        }
    }
}
