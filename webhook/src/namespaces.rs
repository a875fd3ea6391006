//! Defaults and maxima of the namespaces of the cluster, from a watch of their metadata.
//!
//! A namespace that is not there yet is for the caller to ask the API server for: it may have been created a moment ago.
//! Of each namespace its name is kept, and of those with limits what they are.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic::AtomicBool},
};

use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, Client, api::PartialObjectMeta, runtime::watcher::Event};
use prometheus::IntCounter;
use trainjob_core::admission::limits::NamespaceLimits;
use trainjob_engine::watch::{Span, Subject, follow};
use trainjob_process::health::Readiness;

use crate::kinds::NAMESPACE_KIND;

/// What is said if the API server knows of no namespaces, which all do.
const BUILT_IN: &str = "it is part of Kubernetes";

/// What the annotations of a namespace set; `None` if nothing.
type Annotated = Option<Arc<NamespaceLimits>>;

type Known = HashMap<Box<str>, Annotated>;

/// What is known of the namespaces.
#[derive(Debug, Default)]
pub struct Namespaces(RwLock<Known>);

impl Namespaces {
    /// What the annotations of a namespace set; `None` if the namespace is not known.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Annotated> {
        self.read().get(name).cloned()
    }

    /// How many are known.
    #[must_use]
    pub fn count(&self) -> usize {
        self.read().len()
    }

    /// Watches them; never returns. `readiness` is told when the first list is complete, and `restarts` of failures.
    pub async fn watch(
        &self,
        client: &Client,
        readiness: &Readiness,
        restarts: &IntCounter,
        unreachable: &AtomicBool,
    ) {
        // Only their metadata is asked for.
        let api: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
        let subject =
            Subject { kind: NAMESPACE_KIND, install: Some(BUILT_IN), span: Span::Short, restarts };
        let mut listed = Known::new();
        follow(api, subject, unreachable, |news| match news {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => put(&mut listed, &object.metadata),
            Ok(Event::InitDone) => {
                *self.write() = std::mem::take(&mut listed);
                readiness.set(NAMESPACE_KIND, true);
            }
            Ok(Event::Apply(object)) => put(&mut self.write(), &object.metadata),
            Ok(Event::Delete(object)) => {
                self.write().remove(object.metadata.name.unwrap_or_default().as_str());
            }
            Err(_) => {}
        })
        .await;
    }

    // Every change under the lock is complete in itself, so a poisoned state is still a good one.
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the annotations of a namespace with this metadata set.
pub(crate) fn annotated(metadata: &ObjectMeta) -> Annotated {
    metadata.annotations.as_ref().and_then(NamespaceLimits::of).map(Arc::new)
}

fn put(known: &mut Known, metadata: &ObjectMeta) {
    let name = metadata.name.clone().unwrap_or_default();
    known.insert(name.into(), annotated(metadata));
}

#[cfg(test)]
mod tests {
    use trainjob_api::constants::MAXIMUM_TTL_ANNOTATION;

    use super::*;

    fn metadata(name: &str, annotations: &[(&str, &str)]) -> ObjectMeta {
        let annotations = annotations.iter().map(|(key, text)| ((*key).into(), (*text).into()));
        ObjectMeta {
            name: Some(name.to_owned()),
            annotations: Some(annotations.collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_namespace_is_known_with_its_limits_or_without_any() {
        let namespaces = Namespaces::default();
        let limited = [(MAXIMUM_TTL_ANNOTATION, "60"), ("a", "b")];
        put(&mut namespaces.write(), &metadata("limited", &limited));
        put(&mut namespaces.write(), &metadata("free", &[("a", "b")]));
        assert!(namespaces.get("limited").unwrap().is_some());
        assert_eq!(namespaces.get("free"), Some(None));
        assert_eq!(namespaces.get("unknown"), None);
        assert_eq!(namespaces.count(), 2);
        put(&mut namespaces.write(), &metadata("limited", &[]));
        assert_eq!(namespaces.get("limited"), Some(None));
    }
}
