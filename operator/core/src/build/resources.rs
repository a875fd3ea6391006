//! What a container may use: laying a job's wishes over a runtime's, and counting processors.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity,
};

use super::{error::BuildError, quantity::whole_units};

type Amounts = BTreeMap<String, Quantity>;

/// `wishes` laid over `base`, key by key, limits and requests each for themselves.
///
/// Claims are dropped, of either side, as Kubeflow Trainer does: Kueue computes a job's quota with
/// Trainer's code, and what runs must be what was counted.
pub(crate) fn overlay(
    base: Option<&ResourceRequirements>,
    wishes: &ResourceRequirements,
) -> ResourceRequirements {
    let both = |part: fn(&ResourceRequirements) -> Option<&Amounts>| {
        let mut amounts = base.and_then(part).cloned().unwrap_or_default();
        amounts.extend(part(wishes).cloned().unwrap_or_default());
        (!amounts.is_empty()).then_some(amounts)
    };
    ResourceRequirements {
        limits: both(|r| r.limits.as_ref()),
        requests: both(|r| r.requests.as_ref()),
        claims: None,
    }
}

/// The GPUs among the resources: what is requested, else the limit, of the first resource by name that
/// has `gpu` in its name and more than none of it.
///
/// Deliberately no more than that: `google.com/tpu` and the names of MIG slices do not count, because
/// PyTorch's `auto` would not find those devices. Nor are several resources added up, because some
/// vendors count memory beside the devices: `nvidia.com/gpu` and, after it, `nvidia.com/gpumem`.
pub(crate) fn gpus(resources: &ResourceRequirements) -> Result<i64, BuildError> {
    let amounts = [&resources.requests, &resources.limits].into_iter().flatten().flatten();
    for (name, quantity) in amounts {
        if name.to_lowercase().contains("gpu") {
            let gpus = units(name, quantity)?;
            if gpus > 0 {
                return Ok(gpus);
            }
        }
    }
    Ok(0)
}

/// The CPUs among the resources, rounded up: what is requested, else the limit, else 0.
pub(crate) fn cpus(resources: &ResourceRequirements) -> Result<i64, BuildError> {
    for amounts in [&resources.requests, &resources.limits].into_iter().flatten() {
        if let Some(quantity) = amounts.get("cpu") {
            let cpus = units("cpu", quantity)?;
            if cpus > 0 {
                return Ok(cpus);
            }
        }
    }
    Ok(0)
}

fn units(name: &str, Quantity(value): &Quantity) -> Result<i64, BuildError> {
    whole_units(value)
        .ok_or_else(|| BuildError::Quantity { resource: name.into(), value: value.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn resources(value: &Value) -> ResourceRequirements {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn wishes_are_laid_over_key_by_key_and_claims_are_dropped() {
        for (base, wishes, expected) in [
            (
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}}),
                json!({"limits": {"cpu": "8"}, "requests": {"memory": "2Gi"}}),
                json!({
                    "limits": {"cpu": "8", "memory": "1Gi"},
                    "requests": {"cpu": "1", "memory": "2Gi"},
                }),
            ),
            (
                json!({"claims": [{"name": "a"}]}),
                json!({"claims": [{"name": "b"}], "limits": {"cpu": "1"}}),
                json!({"limits": {"cpu": "1"}}),
            ),
            (json!({"limits": {}}), json!({}), json!({})),
        ] {
            let overlaid = overlay(Some(&resources(&base)), &resources(&wishes));
            assert_eq!(overlaid, resources(&expected), "{wishes} over {base}");
        }
        let wishes = resources(&json!({"limits": {"cpu": "1"}}));
        assert_eq!(overlay(None, &wishes), wishes);
    }

    #[test]
    fn gpus_are_counted_by_what_is_requested_and_of_one_resource() {
        for (value, expected) in [
            (json!({}), 0),
            (json!({"limits": {"nvidia.com/gpu": "2"}}), 2),
            (json!({"requests": {"amd.com/GPU": 4}}), 4),
            (json!({"requests": {"a/gpu": "1"}, "limits": {"a/gpu": "2"}}), 1),
            (json!({"requests": {"a/gpu": "0"}, "limits": {"a/gpu": "2"}}), 2),
            (json!({"limits": {"a/gpu": "500m"}}), 1),
            (json!({"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}}), 1),
            (json!({"limits": {"a/gpu": "0", "b/gpu": "3"}}), 3),
            (json!({"limits": {"google.com/tpu": "4", "nvidia.com/mig-1g.5gb": "4"}}), 0),
        ] {
            assert_eq!(gpus(&resources(&value)), Ok(expected), "{value}");
        }
    }
}
