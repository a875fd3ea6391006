//! The largest policy that the schema allows.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Map, Value, json};

use super::mistakes::good;
use super::place::{Kind, Place, without_nulls};

/// Of two thirds of a megabyte, each with as much of everything as is allowed: the API server evaluates all rules.
#[tokio::test]
async fn the_largest_policy_is_admitted_within_the_cost_of_rules() -> Result<()> {
    let place = Place::new("largest").await?;
    let answer = place.send(Method::POST, Kind::Cluster, "?dryRun=All", &largest()).await?;
    ensure!(answer.code == 201, "{}: {}", answer.code, answer.message());
    Ok(())
}

fn largest() -> Value {
    let long = |number: usize, length: usize| format!("{number:x>length$}");
    let many = |count: usize, length: usize| -> Value {
        (0..count).map(|number| long(number, length)).collect()
    };
    let selector = json!({
        "matchLabels": (0..16).map(|n| (long(n, 63), json!(long(n, 63)))).collect::<Map<_, _>>(),
        "matchExpressions": (0..16).map(|n| json!({"key": long(n, 63), "operator": "In", "values": many(16, 63)})).collect::<Value>(),
    });
    let tests: Value = (0..8)
        .map(|n| json!({"path": long(n, 253), "operator": "In", "values": many(16, 253)}))
        .collect();
    let rules = (0..32).map(|n| {
        let matching = json!({
            "outcomes": ["Succeeded", "Failed", "Deactivated", "Other"],
            "reasons": many(16, 253), "labels": selector,
        });
        let matching = if n < 31 { matching } else { Value::Null };
        json!({
            "name": long(n, 63), "match": matching, "pods": {"ttlSecondsAfterFinished": 1},
            "action": {"keepLast": {"count": 1, "groupBy": many(4, 63), "maximumAgeSeconds": 1}},
        })
    });
    let mut spec = good(Kind::Cluster);
    spec["rules"] = rules.collect();
    spec["selector"] = selector.clone();
    spec["namespaceSelector"] = selector.clone();
    spec["finished"] = json!({
        "requires": tests,
        "conditions": (0..8).map(|n| json!({"type": long(n, 316), "reasons": many(16, 253), "outcome": "Other"})).collect::<Value>(),
        "phase": {
            "path": long(0, 253), "otherwise": "Other",
            "outcomes": {
                "Succeeded": many(16, 251), "Failed": many(16, 252), "Other": many(16, 253),
            },
        },
        "guards": (0..4).map(|n| json!({"name": long(n, 63), "while": tests})).collect::<Value>(),
    });
    without_nulls(&Kind::Cluster.policy("largest", &spec))
}
