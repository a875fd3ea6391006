//! An object of which no more is read at first than which it is, and of which version.
//!
//! Most of what a watch tells of an object was known before: from the reply to the write that made it so, or because it was
//! listed again. And of one that is gone, nothing else matters.

use std::{borrow::Cow, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::value::RawValue;

use crate::{
    readable::{Readable, Unreadable},
    stripped,
};

/// An object that was not read yet.
#[derive(Debug, Clone)]
pub struct Unread<K> {
    /// Its namespace, name, UID and version.
    metadata: ObjectMeta,
    text: Box<RawValue>,
    kind: PhantomData<fn() -> K>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Identity,
}

/// Which object, of which version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl<K: DeserializeOwned> Unread<K> {
    /// Reads it, without its managed fields.
    #[must_use]
    pub fn read(self) -> Readable<K> {
        let Self { metadata, text, .. } = self;
        let read = stripped::read(text.get());
        Readable(read.map_err(|error| Unreadable { metadata, error: error.to_string() }))
    }
}

impl<'de, K> Deserialize<'de> for Unread<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Object { metadata } = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let Identity { namespace, name, uid, resource_version } = metadata;
        let metadata =
            ObjectMeta { namespace, name, uid, resource_version, ..ObjectMeta::default() };
        Ok(Self { metadata, text, kind: PhantomData })
    }
}

/// Of its metadata there is no more than was read.
impl<K: Resource> Resource for Unread<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::core::WatchEvent;
    use serde_json::json;
    use trainjob_api::TrainJob;

    use super::*;

    fn told(object: &serde_json::Value) -> Unread<TrainJob> {
        // As the API server writes it.
        let event = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
        match serde_json::from_str(&event).unwrap() {
            WatchEvent::Modified(object) => object,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn identity_is_known_before_anything_else_is_read() {
        let object = json!({
            "metadata": {
                "namespace": "ns", "name": "job", "uid": "U", "resourceVersion": "7",
                "labels": {"a": "b"}, "managedFields": [{"manager": "kubectl"}],
            },
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "suspend": true},
        });
        let unread = told(&object);
        let known = ["namespace", "name", "uid", "resourceVersion"];
        let known = known.map(|field| (field.to_owned(), object["metadata"][field].clone()));
        let known = serde_json::Value::Object(known.into_iter().collect());
        assert_eq!(serde_json::to_value(unread.meta()).unwrap(), known);
        let job = unread.read().0.unwrap();
        assert_eq!(job.spec.suspend, Some(true));
        assert!(
            job.metadata.labels.is_some()
                && job.metadata.managed_fields.is_none_or(|it| it.is_empty())
        );
    }

    #[test]
    fn what_cannot_be_read_is_found_when_it_is_read_and_is_still_known() {
        let bad = json!({"metadata": {"name": "bad", "uid": "U", "labels": 1}, "spec": 1});
        let unreadable = told(&bad).read().0.unwrap_err();
        assert_eq!(unreadable.metadata.uid.as_deref(), Some("U"));
        assert!(unreadable.error.contains("integer `1`"), "{}", unreadable.error);
    }
}
