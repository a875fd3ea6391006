//! Reads objects without their managed fields.
//!
//! Who wrote which field, which the API server keeps in every object and sends with it, is often longer
//! than all the rest, is of no use here, and is read into a tree of values. In a storm of deletions that
//! would be most of what the operator does, and where its memory goes.

use std::borrow::Cow;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// Reads an object as if it had no managed fields.
///
/// # Errors
///
/// It is not JSON, or not a `K`.
pub fn read<K: DeserializeOwned>(text: &str) -> Result<K, serde_json::Error> {
    serde_json::from_str(&without_managed_fields(text))
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

fn without_managed_fields(text: &str) -> Cow<'_, str> {
    // What is wrong with it is found by who reads it.
    let object: Option<Object<'_>> = serde_json::from_str(text).ok();
    let metadata = object.and_then(|object| object.metadata);
    let Some(fields) = metadata.and_then(|metadata| metadata.managed_fields) else {
        return Cow::Borrowed(text);
    };
    // It is a part of the text, which is told by where both are.
    let fields = fields.get();
    let start = fields.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    match (text.get(..start), text.get(start.wrapping_add(fields.len())..)) {
        (Some(before), Some(after)) => Cow::Owned([before, "[]", after].concat()),
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn managed_fields_are_left_out_and_nothing_else_is() {
        let fields = json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:suspend": {}}}}]);
        let mut object = json!({
            "kind": "TrainJob",
            "metadata": {"name": "a", "annotations": {"said": fields.to_string()}},
            "spec": {"suspend": true, "managedFields": fields.clone()},
        });
        assert_eq!(read::<Value>(&object.to_string()).unwrap(), object, "there are none");
        for managed in [fields, json!([]), json!(null)] {
            let mut with = object.clone();
            with["metadata"]["managedFields"] = managed.clone();
            if !managed.is_null() {
                object["metadata"]["managedFields"] = json!([]);
            }
            for text in [with.to_string(), serde_json::to_string_pretty(&with).unwrap()] {
                let read: Value = read(&text).unwrap();
                assert_eq!(read["metadata"]["managedFields"].as_array().map_or(0, Vec::len), 0);
                assert_eq!(read["spec"], object["spec"]);
                assert_eq!(read["metadata"]["annotations"], object["metadata"]["annotations"]);
            }
        }
    }

    #[test]
    fn what_is_no_object_is_an_error_of_who_reads_it() {
        for text in ["", "{", "[1]", r#"{"metadata": 1}"#, r#"{"metadata": {"managedFields": ["#] {
            assert_eq!(without_managed_fields(text), text);
        }
    }
}
