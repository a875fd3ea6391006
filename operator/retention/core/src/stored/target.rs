//! The kind of object that a policy is about.

use trainjob_api::lifecycle::v1alpha1::policy as api;

use super::error::{At, StoredError};
use crate::{kind::GroupKind, policy::PolicyError};

/// The kind in `spec.target`.
pub(super) fn target(target: &api::Target) -> Result<GroupKind, StoredError> {
    let api::Target { api_group, kind } = target;
    if api_group.is_empty() && kind != "Pod" {
        return Err(PolicyError::CoreKind(kind.clone())).at("spec.target.kind");
    }
    Ok(GroupKind { group: api_group.as_str().into(), kind: kind.as_str().into() })
}
