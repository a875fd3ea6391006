//! What is known of the objects of one kind, as a watch tells it.

use std::sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicBool};

use kube::{Api, Resource, runtime::watcher::Event};
use tokio::sync::watch;
use trainjob_core::facts::ObjectKey;

use crate::{
    versions::{self, Source, Versions},
    watch::{Subject, follow},
};

/// The facts of one kind's objects, each of the newest version that a watch has told.
#[derive(Debug)]
pub struct Records<T> {
    versions: Mutex<Versions<(u64, T)>>,
    is_listed: watch::Sender<bool>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self { versions: Mutex::default(), is_listed: watch::Sender::new(false) }
    }
}

impl<T: Clone> Records<T> {
    /// The facts of an object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<T> {
        self.lock().get(key).map(|(_, facts)| facts.clone())
    }

    /// The keys of all objects.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.lock().keys().cloned().collect()
    }

    /// Waits until all objects are known.
    pub async fn listed(&self) {
        // It cannot fail while the sender is held.
        let _ = self.is_listed.subscribe().wait_for(|listed| *listed).await;
    }

    /// Keeps the facts of each object that has some, for ever, and says of which objects they changed.
    pub async fn follow<K>(
        &self,
        api: Api<K>,
        subject: Subject<'_>,
        unreachable: &AtomicBool,
        facts: impl Fn(&K) -> Option<T>,
        changed: impl Fn(ObjectKey),
    ) where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
        K: Send + 'static,
    {
        let seen = |object: &K, facts| {
            let key = ObjectKey::of(object.meta());
            if self.is_news(&key, object, facts) {
                changed(key);
            }
        };
        follow(api, subject, unreachable, |news| match news {
            Ok(Event::Init) => self.lock().relist(),
            Ok(Event::InitApply(object) | Event::Apply(object)) => seen(&object, facts(&object)),
            Ok(Event::Delete(object)) => seen(&object, None),
            Ok(Event::InitDone) => {
                let vanished = self.lock().listed();
                for (key, _) in vanished {
                    changed(key);
                }
                self.is_listed.send_replace(true);
            }
            Err(_) => {}
        })
        .await;
    }

    fn is_news<K: Resource>(&self, key: &ObjectKey, object: &K, facts: Option<T>) -> bool {
        let version =
            versions::parse(object.meta().resource_version.as_deref().unwrap_or_default());
        let mut known = self.lock();
        match facts {
            Some(facts) => known.put(key, (version, facts), Source::Watch),
            None => known.remove(key, version).is_some(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Versions<(u64, T)>> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
