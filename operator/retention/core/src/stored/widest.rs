//! What a policy might select that is not understood.
//!
//! | not understood | then the policy might select |
//! |---|---|
//! | anything but the following | the kind, namespaces and labels that it names |
//! | `selector` | all objects of its kind in its namespaces |
//! | `namespaceSelector` | its kind in all namespaces, the excluded ones included, which it could name |
//! | a field of the spec that this version does not know | its kind with any labels, in all namespaces if it is a cluster policy: the field may widen what is selected |
//! | `target` | objects of any kind |
//!
//! A target says one kind, so a field beside it is not taken for another target. A policy of a namespace never
//! reaches beyond that.

use serde_json::Value;
use trainjob_api::lifecycle::v1alpha1::policy::Target;

use super::{
    error::StoredError,
    given,
    selector::selector,
    spec::{PolicyKind, strictly},
    target::target,
};
use crate::{
    kind::GroupKind,
    metadata::Metadata,
    policy::{Limits, Reach, Scope, UnreadablePolicy},
    selector::Selector,
};

/// The fields of a spec.
const FIELDS: [&str; 14] = [
    "target",
    "selector",
    "namespaceSelector",
    "mode",
    "priority",
    "finished",
    "rules",
    "owned",
    "overrides",
    "holds",
    "limits",
    "propagation",
    "deletesPerSecond",
    "breaker",
];

/// The kind of the objects that a policy might select, if that is known, and which of them.
pub(super) fn selection(
    kind: PolicyKind,
    metadata: &Metadata,
    spec: &Value,
) -> (Option<GroupKind>, UnreadablePolicy) {
    let mut fields = spec.as_object().into_iter().flatten();
    let is_known = spec.is_object() && fields.all(|(name, _)| FIELDS.contains(&name.as_str()));
    let named = |field: &str| named(spec, field).ok().filter(|_| is_known);
    let reach = match kind {
        PolicyKind::Namespaced if metadata.namespace.is_empty() => Reach::Everywhere,
        PolicyKind::Namespaced => {
            Reach::Scope(Scope::Namespace(metadata.namespace.as_str().into()))
        }
        PolicyKind::Cluster => named("namespaceSelector").map_or(Reach::Everywhere, |namespaces| {
            Reach::Scope(Scope::Cluster { namespaces, limits: Limits::default() })
        }),
    };
    let selector = named("selector").unwrap_or_default();
    (self::kind(spec).ok(), UnreadablePolicy { reach, selector })
}

/// The selector in a field of the spec; one that is absent selects everything.
fn named(spec: &Value, field: &str) -> Result<Selector, StoredError> {
    let Some(stored) = spec.get(field) else { return Ok(Selector::default()) };
    given::check(field, stored)?;
    selector(field, &strictly(field, stored)?)
}

fn kind(spec: &Value) -> Result<GroupKind, StoredError> {
    target(&strictly::<Target>("target", spec.get("target").unwrap_or(&Value::Null))?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_fields_are_those_of_the_schema() {
        let [_, cluster] = trainjob_api::crd::retention();
        let crd = serde_json::to_value(cluster).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let fields = schema["properties"]["spec"]["properties"].as_object().unwrap();
        let fields: BTreeSet<_> = fields.keys().map(String::as_str).collect();
        assert_eq!(fields, FIELDS.into());
    }
}
