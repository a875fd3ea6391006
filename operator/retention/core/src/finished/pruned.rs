//! Objects of any kind, cut down to the fields that somebody reads while they are read.
//!
//! A Workflow may be a megabyte of JSON of which ten words matter.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::metadata::Metadata;

/// The field that every object has.
const METADATA: &str = "metadata";

/// The names of fields from the top of an object down to one field. What is in a list has no name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Box<[Box<str>]>);

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no path: names of fields with dots between them, without indices")]
pub struct PathError(String);

impl FieldPath {
    /// Reads names with dots between them.
    ///
    /// # Errors
    ///
    /// If a name is missing, or an index is given.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_part = |c: char| is_first(c) || c.is_ascii_digit() || c == '-';
        let is_name = |name: &str| name.starts_with(is_first) && name.chars().all(is_part);
        if !path.split('.').all(is_name) {
            return Err(PathError(path.to_owned()));
        }
        Ok(Self(path.split('.').map(Into::into).collect()))
    }

    /// The field in an object, if it is there and not null.
    pub(super) fn find<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let field = self.0.iter().try_fold(object, |object, name| object.get(&**name));
        field.filter(|field| !field.is_null())
    }
}

/// The fields that are read of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fields {
    /// Whether all below is read.
    whole: bool,
    inner: BTreeMap<Box<str>, Self>,
}

impl<'a> FromIterator<&'a FieldPath> for Fields {
    fn from_iter<I: IntoIterator<Item = &'a FieldPath>>(paths: I) -> Self {
        let mut fields = Self::default();
        for path in paths {
            let names = path.0.iter();
            let inner = names
                .fold(&mut fields, |fields, name| fields.inner.entry(name.clone()).or_default());
            inner.whole = true;
        }
        fields
    }
}

/// The metadata of an object, and the fields that are read.
#[derive(Debug)]
pub(super) struct Pruned {
    pub(super) metadata: Metadata,
    pub(super) fields: Value,
}

impl Fields {
    /// Reads these fields of an object, and its metadata.
    pub(super) fn read(&self, object: &str) -> Result<Pruned, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(object);
        let pruned = deserializer.deserialize_map(ObjectVisitor(self))?;
        deserializer.end()?;
        Ok(pruned)
    }

    /// Adds the next value of a map to `fields` if it is read.
    fn read_entry<'de, A: MapAccess<'de>>(
        &self,
        name: String,
        map: &mut A,
        fields: &mut serde_json::Map<String, Value>,
    ) -> Result<(), A::Error> {
        match self.inner.get(&*name) {
            Some(inner) => fields.insert(name, map.next_value_seed(inner)?),
            None => map.next_value::<IgnoredAny>().map(|_| None)?,
        };
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for &Fields {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.whole {
            return Value::deserialize(deserializer);
        }
        deserializer.deserialize_any(FieldVisitor(self))
    }
}

/// Visits the whole object.
struct ObjectVisitor<'a>(&'a Fields);

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Pruned;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pruned, A::Error> {
        let (mut metadata, mut fields) = (Metadata::default(), serde_json::Map::new());
        while let Some(name) = map.next_key::<String>()? {
            if name != METADATA {
                self.0.read_entry(name, &mut map, &mut fields)?;
            } else if self.0.inner.contains_key(METADATA) {
                let all: Value = map.next_value()?;
                metadata = Metadata::deserialize(&all).map_err(A::Error::custom)?;
                fields.insert(name, all);
            } else {
                metadata = map.next_value()?;
            }
        }
        Ok(Pruned { metadata, fields: Value::Object(fields) })
    }
}

/// Visits a field of which only parts are read. What has no fields has none of those parts.
struct FieldVisitor<'a>(&'a Fields);

impl<'de> Visitor<'de> for FieldVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = serde_json::Map::new();
        while let Some(name) = map.next_key::<String>()? {
            self.0.read_entry(name, &mut map, &mut fields)?;
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(paths: &[&str]) -> Fields {
        let paths: Vec<_> = paths.iter().map(|path| FieldPath::parse(path).unwrap()).collect();
        paths.iter().collect()
    }

    #[test]
    fn only_fields_on_a_path_are_kept() {
        let object = json!({
            "apiVersion": "v1", "metadata": {"name": "w", "labels": {"a": "b"}},
            "spec": {"ttl": 5, "templates": [{"name": "x"}, {"ttl": 6}]},
            "status": {"phase": "Failed", "nodes": {"n": {"phase": "Failed"}}, "conditions": [{"type": "C"}],
                "times": [1, 2.5, null], "text": "t", "yes": true, "number": -7, "none": null},
        });
        for (paths, expected) in [
            (
                &["status.phase", "spec.ttl"][..],
                json!({"spec": {"ttl": 5}, "status": {"phase": "Failed"}}),
            ),
            (&["status.conditions"], json!({"status": {"conditions": [{"type": "C"}]}})),
            (&["status.nodes.n"], json!({"status": {"nodes": {"n": {"phase": "Failed"}}}})),
            (&["spec.templates.name"], json!({"spec": {"templates": null}})),
            (
                &[
                    "status.text.a",
                    "status.yes.a",
                    "status.number.a",
                    "status.none.a",
                    "status.times.a",
                ],
                json!({"status": {"text": null, "yes": null, "number": null, "none": null, "times": null}}),
            ),
            (&["absent", "status.absent"], json!({"status": {}})),
            (&["status", "status.phase"], json!({"status": object["status"]})),
        ] {
            let pruned = fields(paths).read(&object.to_string()).unwrap();
            assert_eq!(pruned.fields, expected, "{paths:?}");
            assert_eq!(pruned.metadata.name, "w");
        }
    }

    #[test]
    fn metadata_are_read_beside_fields_of_them() {
        let object =
            json!({"metadata": {"name": "w", "generation": 3}, "status": {"phase": "Failed"}});
        let pruned = fields(&["metadata.generation"]).read(&object.to_string()).unwrap();
        let path = FieldPath::parse("metadata.generation").unwrap();
        assert_eq!(path.find(&pruned.fields), Some(&json!(3)));
        assert_eq!(pruned.metadata.name, "w");
        let text = r#"{"metadata": {"name": 7}}"#;
        assert!(fields(&["metadata.generation"]).read(text).is_err());
    }

    #[test]
    fn a_path_finds_a_field_that_is_there() {
        let object = json!({"a": {"b": {"c": 1}, "d": null, "e": [{"f": 2}]}});
        for (path, expected) in [
            ("a.b.c", Some(json!(1))),
            ("a.b", Some(json!({"c": 1}))),
            ("a.d", None),
            ("a.e.f", None),
            ("a.x", None),
            ("a.b.c.d", None),
        ] {
            let found = FieldPath::parse(path).unwrap().find(&object).cloned();
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_names_with_dots() {
        for path in ["", ".", "status.", ".status", "a..b", "a.b[0]", "a.*", "a b", "a.0", "-a"] {
            assert!(FieldPath::parse(path).is_err(), "{path}");
        }
        for path in ["status", "status.completionTime", "metadata.generation", "a_b.c-d.E9"] {
            assert!(FieldPath::parse(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn a_text_that_is_no_object_is_an_error() {
        for text in ["", "[]", "{", "{} {}", "null", r#"{"metadata": 7}"#] {
            assert!(fields(&["status.phase"]).read(text).is_err(), "{text}");
        }
    }
}
