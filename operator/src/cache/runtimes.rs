//! The runtimes.

use std::{collections::HashSet, sync::Arc};

use trainjob_core::{
    build::{Runtime, RuntimeKey},
    facts::ObjectKey,
};

use super::Cache;

impl Cache {
    /// Takes in a runtime; returns the unfinished jobs that name it.
    pub fn put_runtime(&self, runtime: Runtime) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let key = runtime.key.clone();
        state.runtimes.insert(key.clone(), Arc::new(runtime));
        state.named_runtimes.jobs(&key)
    }

    /// Takes in that a runtime is gone; returns the unfinished jobs that name it, which may say that they
    /// wait for another reason than that.
    pub fn remove_runtime(&self, key: &RuntimeKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        state.runtimes.remove(key);
        state.named_runtimes.jobs(key)
    }

    /// Keeps of the runtimes of one kind only those in `listed`; returns the unfinished jobs that name
    /// another.
    pub fn retain_runtimes(&self, kind: &str, listed: &HashSet<RuntimeKey>) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let gone = |key: &RuntimeKey| key.kind() == kind && !listed.contains(key);
        let gone: Vec<_> = state.runtimes.extract_if(|key, _| gone(key)).collect();
        gone.iter().flat_map(|(key, _)| state.named_runtimes.jobs(key)).collect()
    }
}
