//! Whether two values mean the same, as Kubernetes' semantic equality has it.
//!
//! An absent list or map is an empty one, and a quantity is an amount, however it is written: `1` is
//! `1000m`. A struct that is there but empty differs from one that is not. What a client written in Go
//! cannot tell from an absent field, and so leaves out when it sends an object back, means the same: an
//! empty text, a `readOnly` that is false.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::build::quantity;

/// The finest digits of a quantity that Kubernetes keeps.
const DIGITS: i64 = 9;

/// Fields that are maps with free keys: empty is absent, but each key that is there counts.
const MAPS: [&str; 9] = [
    "annotations",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "options",
    "overhead",
    "requests",
    "volumeAttributes",
];

/// Fields that are structs but no pointers in Go, which writes them even where they were absent.
const STRUCTS: [&str; 2] = ["metadata", "resources"];

/// Whether the two mean the same. Nearly always they are equal, which is quickly seen.
pub(super) fn same<T: Serialize + PartialEq + ?Sized>(one: &T, other: &T) -> bool {
    // What was read from JSON can be written as JSON.
    let meaning = |value| meaning(serde_json::to_value(value).unwrap_or_default());
    one == other || meaning(one) == meaning(other)
}

fn meaning(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(meaning).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(field, value)| {
                let value = match field.as_str() {
                    "sizeLimit" | "divisor" => amount(value),
                    "limits" | "requests" => amounts(value),
                    map if MAPS.contains(&map) => value,
                    _ => meaning(value),
                };
                (field, value)
            });
            fields.filter(|(field, value)| !is_nothing(field, value)).collect()
        }
        scalar => scalar,
    }
}

fn is_nothing(field: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(keys) => {
            keys.is_empty() && (MAPS.contains(&field) || STRUCTS.contains(&field))
        }
        // A claim without a class differs from one with the default class.
        Value::String(text) => text.is_empty() && field != "storageClassName",
        Value::Bool(flag) => !flag && field == "readOnly",
        Value::Number(_) => false,
    }
}

fn amounts(value: Value) -> Value {
    match value {
        Value::Object(keys) => {
            keys.into_iter().map(|(key, value)| (key, amount(value))).collect::<Map<_, _>>().into()
        }
        other => meaning(other),
    }
}

/// A quantity as the number of its billionths; what is none stays as it is.
fn amount(value: Value) -> Value {
    let billionths = value.as_str().and_then(|quantity| quantity::parts(quantity, DIGITS));
    billionths.map_or(value, |billionths| billionths.to_string().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_mean_the_same_are_the_same() {
        for (one, other) in [
            (json!({"env": []}), json!({})),
            (json!({"env": null}), json!({})),
            (json!({"nodeSelector": {}}), json!({})),
            (json!([{"name": "A", "value": ""}]), json!([{"name": "A"}])),
            (json!({"limits": {"cpu": "1"}}), json!({"limits": {"cpu": "1000m"}})),
            (json!({"requests": {"memory": "1Gi"}}), json!({"requests": {"memory": "1024Mi"}})),
            (json!({"emptyDir": {"sizeLimit": "0.5"}}), json!({"emptyDir": {"sizeLimit": "500m"}})),
            (json!({"divisor": "1k"}), json!({"divisor": "1000"})),
            (json!({"name": "v", "readOnly": false, "subPath": ""}), json!({"name": "v"})),
            (json!({"spec": {"resources": {}}, "metadata": {}}), json!({"spec": {}})),
            (json!({"metadata": {"creationTimestamp": null}}), json!({})),
        ] {
            assert!(same(&one, &other), "{one} and {other}");
        }
    }

    #[test]
    fn values_that_mean_something_else_are_not() {
        for (one, other) in [
            (json!({"securityContext": {}}), json!({})),
            (json!({"nodeSelector": {"value": ""}}), json!({})),
            (json!({"labels": {"gpu": ""}}), json!({"labels": {"cpu": ""}})),
            (json!({"storageClassName": ""}), json!({})),
            (json!({"allowPrivilegeEscalation": false}), json!({})),
            (json!({"spec": {}}), json!({})),
            (json!({"suspend": false}), json!({})),
            (json!({"seconds": 0}), json!({})),
            (json!({"limits": {"cpu": "1"}}), json!({"limits": {"cpu": "1001m"}})),
            (json!({"limits": {"cpu": "0"}}), json!({"limits": {}})),
            (json!({"name": "1"}), json!({"name": "1000m"})),
            (json!([1, 2]), json!([2, 1])),
        ] {
            assert!(!same(&one, &other), "{one} and {other}");
        }
    }
}
