//! The runtimes, and which jobs name them.

use std::{collections::HashSet, sync::Arc};

use trainjob_core::{
    build::{Runtime, RuntimeKey},
    facts::ObjectKey,
};

use super::{Cache, State};

impl Cache {
    /// Takes in a runtime; returns the unfinished jobs that name it.
    pub fn put_runtime(&self, runtime: Runtime) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let key = runtime.key.clone();
        state.runtimes.insert(key.clone(), Arc::new(runtime));
        state.jobs_naming(&key)
    }

    /// Takes in that a runtime is gone; returns the unfinished jobs that name it, which may say that they
    /// wait for another reason than that.
    pub fn remove_runtime(&self, key: &RuntimeKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        state.runtimes.remove(key);
        state.jobs_naming(key)
    }

    /// Keeps of the runtimes of one kind only those in `listed`; returns the unfinished jobs that name
    /// another.
    pub fn retain_runtimes(&self, kind: &str, listed: &HashSet<RuntimeKey>) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let gone = |key: &RuntimeKey| key.kind() == kind && !listed.contains(key);
        let gone: Vec<_> = state.runtimes.extract_if(|key, _| gone(key)).collect();
        gone.iter().flat_map(|(key, _)| state.jobs_naming(key)).collect()
    }
}

impl State {
    /// The unfinished jobs that name a runtime.
    fn jobs_naming(&self, runtime: &RuntimeKey) -> Vec<ObjectKey> {
        self.jobs_by_runtime.get(runtime).into_iter().flatten().cloned().collect()
    }

    /// A job names another runtime than before, or none.
    pub(super) fn runtime_named(
        &mut self,
        key: &ObjectKey,
        before: Option<&RuntimeKey>,
        now: Option<RuntimeKey>,
    ) {
        if let Some(before) = before
            && let Some(jobs) = self.jobs_by_runtime.get_mut(before)
        {
            jobs.remove(key);
            if jobs.is_empty() {
                self.jobs_by_runtime.remove(before);
            }
        }
        if let Some(now) = now {
            self.jobs_by_runtime.entry(now).or_default().insert(key.clone());
        }
    }
}
