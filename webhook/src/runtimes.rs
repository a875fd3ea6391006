//! The runtimes of the cluster, from watches.
//!
//! A runtime that is not there yet, or cannot be read, is for the caller to ask the API server for: it
//! may have been created a moment ago.
//!
//! They are kept as text: whoever may create runtimes could otherwise fill the memory with them, for what is
//! two bytes in JSON may be kilobytes as a value. The first few small ones are kept as values, too; what needs a large one
//! is a [large review](crate::large).

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic::AtomicBool},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client, Resource, runtime::watcher::Event};
use prometheus::IntCounter;
use serde::Serialize;
use trainjob_api::{
    ClusterTrainingRuntime, TrainingRuntime,
    v1alpha1::{CLUSTER_TRAINING_RUNTIME_KIND, TRAINING_RUNTIME_KIND},
};
use trainjob_core::build::{Runtime, RuntimeKey};
use trainjob_engine::{
    Readable, stripped,
    watch::{Span, Subject, follow},
};
use trainjob_process::health::Readiness;

const INSTALL_CRDS: &str =
    "install them with: kubectl apply --server-side -f charts/trainjob-operator/files/crds";

/// How many runtimes are kept as values.
const VALUES: usize = 16;
/// How many parts a small runtime may have: its value takes less than a megabyte.
const SMALL: usize = 200;

type Known = HashMap<RuntimeKey, Kept>;

/// A runtime as it is kept.
#[derive(Debug, Clone)]
struct Kept {
    text: Arc<str>,
    is_small: bool,
    value: Option<Arc<Runtime>>,
}

/// What is known of the runtimes.
#[derive(Debug, Default)]
pub struct Runtimes(RwLock<Known>);

impl Runtimes {
    /// The runtime, if it is known.
    #[must_use]
    pub fn get(&self, key: &RuntimeKey) -> Option<Arc<Runtime>> {
        let kept = self.read().get(key).cloned()?;
        kept.value.or_else(|| value(key, &kept.text).map(Arc::new))
    }

    /// Whether the runtime is known, and its value takes much time and memory.
    #[must_use]
    pub fn is_large(&self, key: &RuntimeKey) -> bool {
        self.read().get(key).is_some_and(|kept| !kept.is_small)
    }

    /// How many of a kind are known.
    #[must_use]
    pub fn count(&self, kind: &str) -> usize {
        self.read().keys().filter(|key| key.kind() == kind).count()
    }

    /// Watches both kinds; never returns. `readiness` is told when a first list is complete, and
    /// `restarts` of failures, in the order of [`KINDS`](crate::kinds::KINDS).
    pub async fn watch(
        &self,
        client: &Client,
        readiness: &Readiness,
        restarts: [&IntCounter; 2],
        unreachable: &AtomicBool,
    ) {
        let [of_namespaces, of_cluster] = restarts;
        let subject = |kind, restarts| Subject {
            kind,
            install: Some(INSTALL_CRDS),
            span: Span::Short,
            restarts,
        };
        let of_namespaces = subject(TRAINING_RUNTIME_KIND, of_namespaces);
        let of_cluster = subject(CLUSTER_TRAINING_RUNTIME_KIND, of_cluster);
        tokio::join!(
            self.follow::<TrainingRuntime>(client, readiness, of_namespaces, unreachable),
            self.follow::<ClusterTrainingRuntime>(client, readiness, of_cluster, unreachable),
        );
    }

    async fn follow<K>(
        &self,
        client: &Client,
        readiness: &Readiness,
        subject: Subject<'_>,
        unreachable: &AtomicBool,
    ) where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
        K: Serialize + Send + 'static,
    {
        let api: Api<Readable<K>> = Api::all(client.clone());
        let kind = subject.kind;
        let mut listed = Known::new();
        follow(api, subject, unreachable, |news| match news {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                if let Ok(runtime) = object.0 {
                    put(&mut listed, kind, &runtime);
                }
            }
            Ok(Event::InitDone) => {
                self.replace(kind, std::mem::take(&mut listed));
                readiness.set(kind, true);
            }
            Ok(Event::Apply(object)) => match object.0 {
                Ok(runtime) => put(&mut self.write(), kind, &runtime),
                Err(unreadable) => {
                    self.write().remove(&runtime_key_of(kind, &unreadable.metadata));
                }
            },
            Ok(Event::Delete(object)) => {
                self.write().remove(&runtime_key_of(kind, object.meta()));
            }
            Err(_) => {}
        })
        .await;
    }

    /// All runtimes of a kind are these.
    fn replace(&self, kind: &str, listed: Known) {
        let mut known = self.write();
        known.retain(|key, _| key.kind() != kind);
        known.extend(listed);
    }

    // Every change under the lock is complete in itself, so a poisoned state is still a good one.
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn put<K: Resource + Serialize>(known: &mut Known, kind: &str, runtime: &K) {
    // What was read from JSON can be written as JSON.
    let Ok(text) = serde_json::to_string(runtime) else { return };
    let key = runtime_key_of(kind, runtime.meta());
    known.remove(&key);
    let values = known.values().filter(|kept| kept.value.is_some()).count();
    let is_small = stripped::object_count(&text) <= SMALL;
    let is_kept = is_small && values < VALUES;
    let value = if is_kept { value(&key, &text).map(Arc::new) } else { None };
    known.insert(key, Kept { text: text.into(), is_small, value });
}

/// The runtime that a text says. What was written as one can be read as one.
fn value(key: &RuntimeKey, text: &str) -> Option<Runtime> {
    match key {
        RuntimeKey::Cluster { .. } => {
            serde_json::from_str::<ClusterTrainingRuntime>(text).ok().map(Runtime::from)
        }
        RuntimeKey::Namespaced { .. } => {
            serde_json::from_str::<TrainingRuntime>(text).ok().map(Runtime::from)
        }
    }
}

/// The identity of a runtime of one of the two kinds.
pub(crate) fn runtime_key_of(kind: &str, metadata: &ObjectMeta) -> RuntimeKey {
    let name = metadata.name.clone().unwrap_or_default();
    if kind == CLUSTER_TRAINING_RUNTIME_KIND {
        return RuntimeKey::Cluster { name };
    }
    RuntimeKey::Namespaced { namespace: metadata.namespace.clone().unwrap_or_default(), name }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runtime_of_many_parts_is_large_and_not_kept_as_a_value() {
        let runtimes = Runtimes::default();
        let key = |name: &str| RuntimeKey::Cluster { name: name.into() };
        // Beside them there are the runtime, its metadata and its spec, with what holds them.
        for (name, volumes) in [("small", SMALL / 2), ("large", SMALL)] {
            let volumes = vec![json!({"name": "v"}); volumes];
            let pod = json!({"spec": {"containers": [], "volumes": volumes}});
            let job = json!({"name": "node", "template": {"spec": {"template": pod}}});
            let runtime: ClusterTrainingRuntime = serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"template": {"spec": {"replicatedJobs": [job]}}},
            }))
            .unwrap();
            put(&mut runtimes.write(), CLUSTER_TRAINING_RUNTIME_KIND, &runtime);
            assert_eq!(runtimes.get(&key(name)).as_deref(), Some(&Runtime::from(runtime)));
        }
        assert_eq!(
            ["small", "large", "absent"].map(|name| runtimes.is_large(&key(name))),
            [false, true, false]
        );
        let is_value = |name| runtimes.read()[&key(name)].value.is_some();
        assert_eq!([is_value("small"), is_value("large")], [true, false]);
    }

    #[test]
    fn a_runtime_is_what_was_put() {
        let runtimes = Runtimes::default();
        let object = json!({
            "metadata": {"name": "a", "namespace": "n", "labels": {"k": "v"}},
            "spec": {"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": []}}},
        });
        let namespaced: TrainingRuntime = serde_json::from_value(object.clone()).unwrap();
        let cluster: ClusterTrainingRuntime = serde_json::from_value(object).unwrap();
        put(&mut runtimes.write(), TRAINING_RUNTIME_KIND, &namespaced);
        put(&mut runtimes.write(), CLUSTER_TRAINING_RUNTIME_KIND, &cluster);
        for runtime in [Runtime::from(namespaced), Runtime::from(cluster)] {
            assert_eq!(runtimes.get(&runtime.key).as_deref(), Some(&runtime));
            let text = runtimes.read().get(&runtime.key).unwrap().text.clone();
            assert_eq!(value(&runtime.key, &text), Some(runtime));
        }
        runtimes.replace(TRAINING_RUNTIME_KIND, Known::new());
        let gone = RuntimeKey::Namespaced { namespace: "n".into(), name: "a".into() };
        assert_eq!(runtimes.get(&gone), None);
        assert!(runtimes.get(&RuntimeKey::Cluster { name: "a".into() }).is_some());
    }
}
