//! What a Pod is charged for: what the scheduler takes it to request (AT4).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;
use trainjob_core::requests::{BILLIONTHS, requested_billionths};

/// How much of each resource, in the units of the record.
pub type Amounts = BTreeMap<String, u64>;

/// The largest number that the API server stores.
pub const MOST: u64 = i64::MAX.unsigned_abs();

const MEBIBYTE: u128 = 1 << 20;

/// What a Pod requests: cpu in millicores, memory, ephemeral storage and huge pages in MiB, anything else in whole
/// numbers, each rounded up. Nothing, where a quantity is none, which the API server does not store.
#[must_use]
pub fn requested(pod: &PodSpec) -> Amounts {
    let amounts = requested_billionths(pod).unwrap_or_default();
    let amounts = amounts.into_iter().map(|(name, billionths)| {
        let amount = billionths.div_ceil(billionths_in_unit(&name));
        (name, u64::try_from(amount).unwrap_or(MOST).min(MOST))
    });
    amounts.filter(|(_, amount)| *amount > 0).collect()
}

fn billionths_in_unit(resource: &str) -> u128 {
    match resource {
        "cpu" => BILLIONTHS / 1_000,
        "memory" | "ephemeral-storage" => BILLIONTHS * MEBIBYTE,
        pages if pages.starts_with("hugepages-") => BILLIONTHS * MEBIBYTE,
        _ => BILLIONTHS,
    }
}

/// The sum, or the largest number that can be stored.
#[must_use]
pub fn add(one: u64, other: u64) -> u64 {
    one.saturating_add(other).min(MOST)
}

/// So many seconds of an amount, or the largest number that can be stored.
#[must_use]
pub fn for_seconds(amount: u64, seconds: u64) -> u64 {
    amount.saturating_mul(seconds).min(MOST)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(spec: &Value) -> Amounts {
        requested(&serde_json::from_value(spec.clone()).unwrap())
    }

    #[test]
    fn at4_units_are_millicores_mebibytes_and_whole_numbers_rounded_up() {
        for (name, quantity, expected) in [
            ("cpu", "2", 2_000),
            ("cpu", "0.0001", 1),
            ("memory", "1Gi", 1_024),
            ("memory", "1", 1),
            ("memory", "1048577", 2),
            ("ephemeral-storage", "10M", 10),
            ("hugepages-2Mi", "4Mi", 4),
            ("nvidia.com/gpu", "8", 8),
            ("example.com/tokens", "9223372036854775807", MOST),
        ] {
            let spec =
                json!({"containers": [{"name": "a", "resources": {"requests": {name: quantity}}}]});
            assert_eq!(
                of(&spec),
                Amounts::from([(name.to_owned(), expected)]),
                "{name} {quantity}"
            );
        }
    }

    #[test]
    fn at4_init_containers_sidecars_pod_level_and_overhead_count_as_the_scheduler_counts_them() {
        let cpu = |n: u64| json!({"requests": {"cpu": n.to_string()}});
        let containers =
            json!([{"name": "a", "resources": cpu(1)}, {"name": "b", "resources": cpu(2)}]);
        for (case, spec, expected) in [
            ("containers add up", json!({"containers": containers}), 3_000),
            (
                "an init container runs alone",
                json!({"containers": containers,
                "initContainers": [{"name": "i", "resources": cpu(5)}]}),
                5_000,
            ),
            (
                "a sidecar runs beside them",
                json!({"containers": containers,
                "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": cpu(4)}]}),
                7_000,
            ),
            (
                "the Pod's own request goes first",
                json!({"containers": containers, "resources": cpu(10)}),
                10_000,
            ),
            (
                "overhead comes on top",
                json!({"containers": containers, "overhead": {"cpu": "250m"}}),
                3_250,
            ),
        ] {
            assert_eq!(of(&spec).get("cpu"), Some(&expected), "{case}");
        }
    }

    #[test]
    fn at4_sums_stop_at_the_largest_number_that_is_stored() {
        assert_eq!((add(MOST, 1), for_seconds(MOST, 2), add(1, 2)), (MOST, MOST, 3));
    }
}
