//! An object that may be one that this operator cannot read.
//!
//! The API server stores what its own definition of a kind admits, which may be more than the types here
//! admit. One such object must not keep all others from being listed, so that it cannot be read is part
//! of what was read.
//!
//! This is the idea of `kube::core::DeserializeGuard`, without its tree of values for every object, and
//! without the object's managed fields ([`stripped`]).

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::value::RawValue;

use crate::stripped;

/// An object, or what can be said of it. A `VIEW` has few of the object's fields, and is read whatever the object
/// consists of.
#[derive(Debug, Clone)]
pub struct Readable<K, const VIEW: bool = false>(pub Result<K, Unreadable>);

/// An object that cannot be read.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// Its metadata, which can.
    pub metadata: ObjectMeta,
    /// Why the rest cannot.
    pub error: String,
}

/// The part that all objects have.
#[derive(Deserialize)]
struct Bare {
    #[serde(default)]
    metadata: ObjectMeta,
}

impl<'de, K: DeserializeOwned, const VIEW: bool> Deserialize<'de> for Readable<K, VIEW> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Every text that is read here is in memory.
        let text = <&RawValue>::deserialize(deserializer)?;
        let read = if VIEW { stripped::read_view } else { stripped::read };
        let error = match read(text.get()) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) => error.to_string(),
        };
        let Bare { metadata } = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self(Err(Unreadable { metadata, error })))
    }
}

impl<K: Resource, const VIEW: bool> Resource for Readable<K, VIEW> {
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
        match &self.0 {
            Ok(object) => object.meta(),
            Err(unreadable) => &unreadable.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => object.meta_mut(),
            Err(unreadable) => &mut unreadable.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::json;
    use trainjob_api::{TrainJob, jobset::JobSetView};

    use super::*;

    #[test]
    fn view_of_an_object_is_read_whatever_it_consists_of() {
        let parts = vec![json!({}); 30_000];
        let large = json!({
            "metadata": {"name": "large", "uid": "U"},
            "spec": {"suspend": true, "replicatedJobs": parts},
        });
        let list = json!({
            "apiVersion": "v1", "kind": "List", "metadata": {}, "items": [large],
        });
        let text = list.to_string();
        let list: ObjectList<Readable<JobSetView, true>> = serde_json::from_str(&text).unwrap();
        assert!(list.items[0].0.as_ref().unwrap().spec.suspend);
        let list: ObjectList<Readable<JobSetView>> = serde_json::from_str(&text).unwrap();
        let unreadable = list.items[0].0.as_ref().unwrap_err();
        assert_eq!(unreadable.metadata.uid.as_deref(), Some("U"));
    }

    #[test]
    fn what_cannot_be_read_keeps_its_metadata_and_no_other_from_being_read() {
        let good = json!({
            "metadata": {"name": "good"},
            "spec": {"runtimeRef": {"name": "torch-distributed"}},
        });
        let bad = json!({"metadata": {"name": "bad", "uid": "U"}, "spec": {"runtimeRef": 1}});
        let list = json!({
            "apiVersion": "v1", "kind": "List", "metadata": {}, "items": [bad.clone(), good],
        });
        let list: ObjectList<Readable<TrainJob>> = serde_json::from_str(&list.to_string()).unwrap();
        let read: Vec<_> = list.items.iter().map(|object| object.0.is_ok()).collect();
        assert_eq!(read, [false, true]);
        let unreadable = list.items[0].0.as_ref().unwrap_err();
        assert_eq!(unreadable.metadata.uid.as_deref(), Some("U"));
        assert!(unreadable.error.contains("integer `1`"), "{}", unreadable.error);

        // As the API server writes it.
        let event = format!(r#"{{"type":"MODIFIED","object":{bad}}}"#);
        let event: WatchEvent<Readable<TrainJob>> = serde_json::from_str(&event).unwrap();
        let WatchEvent::Modified(object) = event else { panic!("{event:?}") };
        assert_eq!(object.meta().name.as_deref(), Some("bad"));
    }
}
