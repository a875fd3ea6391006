//! An object as the text of its fields.
//!
//! Most reviews are answered without knowing more of an object than which of its fields differ from
//! before. So it is read once, as far as the fields of its metadata and its spec, which stay text; and what
//! is to be known better is made of that text.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, MapAccess, Visitor, value::MapDeserializer},
};
use serde_json::value::RawValue;
use trainjob_api::constants::REMOVE_FIELDS_ANNOTATION;
use trainjob_core::admission::ownership::Manager;
use trainjob_engine::stripped;

/// Who wrote what, which the API server sends with every object, and hardly any request is judged by.
const MANAGED_FIELDS: &str = "managedFields";

/// How many fields metadata or a spec may have. The schemas know of less than twenty.
const MOST_FIELDS: usize = 100;
/// How many they have.
const USUAL_FIELDS: usize = 12;
/// What an object counts as beside its fields.
const ITSELF: &str = "{}";

/// An object.
#[derive(Debug, Default, Deserialize)]
pub struct Object<'a> {
    /// Its metadata.
    #[serde(borrow, default)]
    pub metadata: Option<Fields<'a>>,
    /// What it says.
    #[serde(borrow, default)]
    pub spec: Option<Fields<'a>>,
}

impl Object<'_> {
    /// Whether it is being deleted.
    #[must_use]
    pub fn is_going(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.has("deletionTimestamp"))
    }

    /// The annotation that asks for the removal of fields, if it is there.
    #[must_use]
    pub fn remove_fields(&self) -> Option<String> {
        let annotations = self.metadata.as_ref()?.get("annotations")?;
        // Hardly any object has it.
        if !annotations.contains(REMOVE_FIELDS_ANNOTATION) {
            return None;
        }
        let mut annotations: BTreeMap<String, String> = serde_json::from_str(annotations).ok()?;
        annotations.remove(REMOVE_FIELDS_ANNOTATION)
    }

    /// Who owns which of its fields; nobody, if that cannot be read.
    #[must_use]
    pub fn managers(&self) -> Vec<Manager> {
        let text = self.metadata.as_ref().and_then(|metadata| metadata.managed);
        let text =
            text.map(RawValue::get).filter(|text| stripped::check_object_count(&[*text]).is_ok());
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The text of a field of its spec, if it is there.
    #[must_use]
    pub fn says(&self, name: &str) -> Option<&str> {
        self.spec.as_ref()?.get(name)
    }

    /// How long the text of its metadata and spec is, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        let parts = [&self.metadata, &self.spec].into_iter().flatten();
        parts.flat_map(Fields::texts).map(str::len).sum()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Named values as they stand in the text, in their order. One that is `null` is as if it were absent.
#[derive(Debug, Default)]
pub struct Fields<'a> {
    named: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// Managed fields, which are as if they were absent, too.
    managed: Option<&'a RawValue>,
}

impl<'a> Fields<'a> {
    /// The text of a field, if it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value.get())
    }

    /// Whether a field is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether both say the same, in the same words, except for some fields.
    #[must_use]
    pub fn equals(&self, other: &Self, except: &[&str]) -> bool {
        self.all_but(except).eq(other.all_but(except))
    }

    fn all_but<'f>(&'f self, except: &'f [&str]) -> impl Iterator<Item = (&'f str, &'a str)> {
        let fields = self.named.iter().map(|(name, value)| (&**name, value.get()));
        fields.filter(|(name, _)| !except.contains(name))
    }

    /// What it means, or what it would without the fields that `keep` does not name.
    ///
    /// # Errors
    ///
    /// It is not a `K`, or what is kept has too many [parts](stripped::check_object_count), itself included.
    pub fn read<K: DeserializeOwned>(
        &self,
        keep: impl Fn(&str) -> bool,
    ) -> Result<K, serde_json::Error> {
        let kept = || self.named.iter().filter(|(name, _)| keep(name));
        let texts: Vec<_> = kept().map(|(_, value)| value.get()).chain([ITSELF]).collect();
        stripped::check_object_count(&texts)?;
        K::deserialize(MapDeserializer::new(kept().map(|(name, value)| (&**name, *value))))
    }

    fn texts(&self) -> impl Iterator<Item = &'a str> {
        self.named.iter().map(|(_, value)| value.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

/// A name without a copy of it, if it stands there as it is.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("named fields")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields<'de>, M::Error> {
        let mut fields: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::with_capacity(USUAL_FIELDS);
        let mut managed = None;
        while let Some(Name(name)) = map.next_key()? {
            if name == MANAGED_FIELDS {
                managed = map.next_value()?;
                continue;
            }
            if fields.len() == MOST_FIELDS {
                return Err(M::Error::custom(format_args!("more than {MOST_FIELDS} fields")));
            }
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(M::Error::custom(format_args!("duplicate field `{name}`")));
            }
            if let Some(value) = map.next_value::<Option<&'de RawValue>>()? {
                fields.push((name, value));
            }
        }
        Ok(Fields { named: fields, managed })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TEXT: &str = r#"{"kind":"X","metadata":{"name":"a","managedFields":[{"a":{}}]},
        "spec":{"a\u0062":1,"b":[2, 3],"c":null},"status":{"d":4}}"#;

    #[test]
    fn an_object_is_read_as_far_as_its_fields() {
        let object: Object<'_> = serde_json::from_str(TEXT).unwrap();
        let spec = object.spec.unwrap();
        assert_eq!(
            (spec.get("ab"), spec.get("b"), spec.get("c")),
            (Some("1"), Some("[2, 3]"), None)
        );
        assert_eq!(spec.read::<Value>(|_| true).unwrap(), json!({"ab": 1, "b": [2, 3]}));
        assert_eq!(spec.read::<Value>(|name| name == "ab").unwrap(), json!({"ab": 1}));
        assert_eq!(object.metadata.unwrap().read::<Value>(|_| true).unwrap(), json!({"name": "a"}));
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["1", r#"{"spec":[]}"#, r#"{"spec":{"a":1,"a":2}}"#, r#"{"spec":{"a":}}"#] {
            assert!(serde_json::from_str::<Object<'_>>(text).is_err(), "{text}");
        }
        for text in ["{}", r#"{"spec":null,"metadata":null}"#] {
            let object: Object<'_> = serde_json::from_str(text).unwrap();
            assert!(object.spec.is_none() && object.is_empty() && !object.is_going(), "{text}");
        }
    }

    #[test]
    fn there_are_only_so_many_fields() {
        for (count, is_read) in [(MOST_FIELDS, true), (MOST_FIELDS + 1, false), (100_000, false)] {
            let spec: serde_json::Map<_, _> =
                (0..count).map(|number| (format!("f{number}"), json!(0))).collect();
            let text = json!({ "spec": spec }).to_string();
            assert_eq!(serde_json::from_str::<Object<'_>>(&text).is_ok(), is_read, "{count}");
        }
    }

    #[test]
    fn fields_are_equal_but_for_some() {
        let fields = |value: &Value| -> Fields<'static> {
            serde_json::from_str(Box::leak(value.to_string().into_boxed_str())).unwrap()
        };
        let one = fields(&json!({"a": 1, "b": {"c": 2}}));
        for (other, except, expected) in [
            (json!({"a": 1, "b": {"c": 2}}), &[][..], true),
            (json!({"a": 1, "b": {"c": 3}}), &[], false),
            (json!({"a": 1, "b": {"c": 3}}), &["b"], true),
            (json!({"a": 1}), &[], false),
            (json!({"b": {"c": 2}, "z": 1}), &["a", "z"], true),
        ] {
            assert_eq!(one.equals(&fields(&other), except), expected, "{other}");
        }
    }
}
