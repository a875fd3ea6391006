//! Reads objects with their managed fields stripped, and counts what they consist of.
//!
//! Who wrote which field, which the API server keeps in every object and sends with it, is often longer
//! than all the rest, is of no use here, and is read into a tree of values. In a storm of deletions that
//! would be most of what the operator does, and where its memory goes.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer as _,
    de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use trainjob_core::build::MAX_OBJECTS;
pub use trainjob_core::build::object_count;

/// Texts of so many bytes or fewer, taken together, cannot have as many.
const SHORT: usize = 2 * MAX_OBJECTS;

/// Reads an object as if it had no managed fields.
///
/// An empty object is two bytes of text and may be a volume of three kilobytes; so there is a limit to how
/// many there may be, before any of them is made. Metadata and status do not count: they take a few times
/// the room of their text, and grow after admission, which counts in the same way.
///
/// # Errors
///
/// It is not JSON, or not a `K`, or consists of more than 13,500 JSON objects beside its metadata and status.
pub fn read<K: DeserializeOwned>(text: &str) -> Result<K, serde_json::Error> {
    let text = without_managed_fields(text);
    if text.len() > SHORT {
        check_object_count(&counted_fields(&text)?)?;
    }
    serde_json::from_str(&text)
}

/// Reads the few fields of an object that a view has, as if it had no managed fields.
///
/// What a view leaves out takes no room, so there is no limit to what the object consists of.
///
/// # Errors
///
/// It is not JSON, or not a `K`.
pub fn read_view<K: DeserializeOwned>(text: &str) -> Result<K, serde_json::Error> {
    serde_json::from_str(&without_managed_fields(text))
}

/// Refuses an object, given by the texts it consists of, that consists of too many JSON objects.
///
/// # Errors
///
/// It has more than 13,500.
pub fn check_object_count(texts: &[&str]) -> Result<(), serde_json::Error> {
    let is_short = texts.iter().map(|text| text.len()).sum::<usize>() <= SHORT;
    if is_short || texts.iter().map(|text| object_count(text)).sum::<usize>() <= MAX_OBJECTS {
        return Ok(());
    }
    Err(serde_json::Error::custom(format!("more than {MAX_OBJECTS} parts, expected fewer")))
}

/// The texts of the fields that count.
fn counted_fields(text: &str) -> Result<Vec<&str>, serde_json::Error> {
    serde_json::Deserializer::from_str(text).deserialize_map(CountedFields)
}

struct CountedFields;

impl<'de> Visitor<'de> for CountedFields {
    type Value = Vec<&'de str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut counted = Vec::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = fields.next_value::<&RawValue>()?;
            if !["metadata", "status"].contains(&&*name) {
                counted.push(value.get());
            }
        }
        Ok(counted)
    }
}

/// Finds the managed fields, and reads nothing of what follows the metadata: that is read by who needs it.
struct FindManagedFields<'f, 'de>(&'f mut Option<&'de RawValue>);

impl<'de> Visitor<'de> for FindManagedFields<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            if name == "metadata" {
                let metadata: Option<Metadata<'de>> = fields.next_value()?;
                *self.0 = metadata.and_then(|metadata| metadata.managed_fields);
                break;
            }
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

fn without_managed_fields(text: &str) -> Cow<'_, str> {
    let mut fields = None;
    // That there is more is no error here, and what is wrong with it is found by who reads it.
    let _ =
        serde_json::Deserializer::from_str(text).deserialize_map(FindManagedFields(&mut fields));
    let Some(fields) = fields else { return Cow::Borrowed(text) };
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
    fn managed_fields_are_stripped_and_nothing_else() {
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
    fn objects_of_more_than_13500_json_objects_are_refused() {
        let of = |count: usize| {
            json!({"spec": {"said": "{{\\\"{", "all": vec![json!({}); count]}}).to_string()
        };
        assert!(read::<Value>(&of(MAX_OBJECTS - 1)).is_ok());
        let error = read::<Value>(&of(MAX_OBJECTS)).unwrap_err().to_string();
        assert_eq!(error, "more than 13500 parts, expected fewer");
    }

    #[test]
    fn parts_of_several_fields_are_counted_together() {
        let [half, rest] = [MAX_OBJECTS / 2, MAX_OBJECTS / 2 + 1].map(|count| "{}".repeat(count));
        assert!(check_object_count(&[&half, &half]).is_ok());
        assert!(check_object_count(&[&half, &rest]).is_err());
    }

    #[test]
    fn what_grows_after_admission_does_not_count() {
        let parts = vec![json!({}); MAX_OBJECTS];
        let object = json!({
            "metadata": {"name": "a", "ownerReferences": parts.clone()},
            "spec": {"parts": vec![json!({}); MAX_OBJECTS - 1]},
            "status": {"conditions": parts},
        });
        assert_eq!(read::<Value>(&object.to_string()).unwrap(), object);
    }

    #[test]
    fn text_that_is_no_object_is_left_as_it_is() {
        for text in ["", "{", "[1]", r#"{"metadata": 1}"#, r#"{"metadata": {"managedFields": ["#] {
            assert_eq!(without_managed_fields(text), text);
        }
    }
}
