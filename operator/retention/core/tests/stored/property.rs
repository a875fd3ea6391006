//! What holds for every text that may be stored.

use std::sync::LazyLock;

use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::{Index, select},
};
use serde_json::{Value, json};
use trainjob_api::crd;
use trainjob_retention_core::{
    finished::Definitions,
    stored::{
        PolicyKind::{self, Cluster, Namespaced},
        read,
    },
};

use crate::{
    everything::everything,
    scene::{least, read_one},
};

/// Any JSON, of words that policies have and of others.
fn json() -> impl Strategy<Value = Value> {
    let words = [
        "", "*", "a", "Job", "batch", "Failed", "Exists", "In", "True", "All", "Enforce", "a.b",
        "a b",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(vec![-1_i64, 0, 1, 60, 1001, 2_147_483_648, i64::MAX]).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(words.to_vec()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let key = prop_oneof![
            select(vec!["name", "key", "values", "keep", "apiGroup", "path"])
                .prop_map(str::to_owned),
            any::<String>()
        ];
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(key, inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A change of a policy at one of its places.
#[derive(Debug, Clone)]
enum Change {
    Replace(Index, Value),
    Add(Index, String, Value),
    Remove(Index),
    Copy(Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    let names = [
        "selector",
        "limits",
        "match",
        "groupBy",
        "outcomes",
        "fromTheFuture",
        "matchLabels",
        "pods",
    ];
    let name = select(names.to_vec()).prop_map(str::to_owned);
    prop_oneof![
        (any::<Index>(), json()).prop_map(|(place, value)| Change::Replace(place, value)),
        (any::<Index>(), name, json())
            .prop_map(|(place, name, value)| Change::Add(place, name, value)),
        any::<Index>().prop_map(Change::Remove),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Copy(from, to)),
    ]
}

/// The pointers of all values in a value.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), all);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), all);
            }
        }
        _ => {}
    }
}

fn apply(policy: &mut Value, change: &Change) {
    let mut all = Vec::new();
    places(policy, "", &mut all);
    match change {
        Change::Replace(place, value) => {
            *policy.pointer_mut(place.get(&all).as_str()).unwrap() = value.clone();
        }
        Change::Add(place, name, value) => {
            if let Some(fields) =
                policy.pointer_mut(place.get(&all).as_str()).and_then(Value::as_object_mut)
            {
                fields.insert(name.clone(), value.clone());
            }
        }
        Change::Remove(place) => {
            let place = place.get(&all).as_str();
            let Some((parent, name)) = place.rsplit_once('/') else { return };
            let name = name.replace("~1", "/").replace("~0", "~");
            if let Some(fields) = policy.pointer_mut(parent).and_then(Value::as_object_mut) {
                fields.remove(&name);
            }
        }
        Change::Copy(from, to) => {
            let value = policy.pointer(from.get(&all).as_str()).unwrap().clone();
            *policy.pointer_mut(to.get(&all).as_str()).unwrap() = value;
        }
    }
}

/// The schema of a spec, as the API server has it.
fn schema(kind: PolicyKind) -> &'static Value {
    static SCHEMAS: LazyLock<[Value; 2]> = LazyLock::new(|| {
        crd::retention().map(|crd| {
            let crd = serde_json::to_value(crd).unwrap();
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            schema["properties"]["spec"].clone()
        })
    });
    let [namespaced, cluster] = &*SCHEMAS;
    match kind {
        Namespaced => namespaced,
        Cluster => cluster,
    }
}

/// Whether a value has only fields and values that the schema knows, and all that it requires. Rules in CEL and patterns
/// are left out, and how long texts and lists may be.
fn fits(schema: &Value, value: &Value) -> bool {
    let is_named = schema.get("enum").is_none_or(|all| all.as_array().unwrap().contains(value));
    let has_enough = |bound: &str, length: usize| {
        schema[bound].as_u64().is_none_or(|least| length >= usize::try_from(least).unwrap())
    };
    let is_of_type = match (schema["type"].as_str().unwrap(), value) {
        ("string", Value::String(text)) => has_enough("minLength", text.chars().count()),
        ("boolean", Value::Bool(_)) => true,
        ("integer", Value::Number(_)) => value.as_i64().is_some_and(|number| {
            // The schema has whole numbers as fractions.
            let limit = |bound: &str| format!("{:.0}", schema[bound].as_f64()?).parse::<i64>().ok();
            limit("minimum").is_none_or(|least| number >= least)
                && limit("maximum").is_none_or(|most| number <= most)
        }),
        ("array", Value::Array(items)) => {
            has_enough("minItems", items.len())
                && items.iter().all(|item| fits(&schema["items"], item))
        }
        ("object", Value::Object(fields)) => {
            let mut required = schema["required"].as_array().into_iter().flatten();
            has_enough("minProperties", fields.len())
                && required.all(|name| fields.contains_key(name.as_str().unwrap()))
                && fields.iter().all(|(name, value)| fits_field(schema, name, value))
        }
        _ => false,
    };
    is_named && is_of_type
}

fn fits_field(schema: &Value, name: &str, value: &Value) -> bool {
    let of_name = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
    of_name.is_some_and(|schema| fits(schema, value))
}

#[test]
fn the_oracle_knows_what_the_schema_knows() {
    assert!(fits(schema(Cluster), &everything()["spec"]));
    for kind in [Namespaced, Cluster] {
        assert!(fits(schema(kind), &least(kind)["spec"]));
        for (name, value) in
            [("fromTheFuture", json!(1)), ("mode", json!("X")), ("rules", json!([]))]
        {
            let mut spec = least(kind)["spec"].clone();
            spec[name] = value;
            assert!(!fits(schema(kind), &spec), "{spec}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_policy_is_read_only_from_what_the_schema_of_this_version_knows(
        changes in vec(change(), 0..4), of_cluster in any::<bool>(), full in any::<bool>(),
    ) {
        let kind = if of_cluster { Cluster } else { Namespaced };
        let mut policy = least(kind);
        if full {
            policy["spec"] = everything()["spec"].clone();
        }
        for change in &changes {
            apply(&mut policy, change);
        }
        match read_one(kind, &policy) {
            Ok(_) => prop_assert!(fits(schema(kind), &policy["spec"]), "{}", policy),
            Err(unread) => prop_assert!(!unread.error.to_string().is_empty()),
        }
    }

    #[test]
    fn whatever_is_stored_there_is_an_answer(text in any::<String>(), value in json(), of_cluster in any::<bool>()) {
        let kind = if of_cluster { Cluster } else { Namespaced };
        for text in [text, value.to_string()] {
            prop_assert!(read(kind, &text, &mut Definitions::default()).is_err());
        }
        let mut policy = least(kind);
        policy["spec"] = value;
        prop_assert!(read_one(kind, &policy).is_err());
    }
}
