//! The runtimes, as far as they find room.
//!
//! Whether there is a runtime, and in which version, is always known. What it says is kept as JSON, in the [room](super::manifests) that
//! manifests of TrainJobs have: that of a namespace in the share of its namespace, those of the cluster in one of their own.

use std::{collections::HashSet, sync::Arc};

use trainjob_api::TrainingRuntime;
use trainjob_core::{
    build::{Runtime, RuntimeKey},
    facts::ObjectKey,
};

use super::{Cache, State, kept_runtimes::Kept, manifests::Of};

impl Cache {
    /// Takes in a runtime that a watch showed; returns the unfinished jobs that name it.
    pub fn put_runtime(&self, runtime: Runtime) -> Vec<ObjectKey> {
        let (key, version, text) = packed(runtime);
        let mut state = self.lock();
        state.runtimes.put(&key, version);
        state.keep_runtime(&key, text);
        state.jobs_naming(&key)
    }

    /// Takes in a reply that shows a runtime, which had made room for others. One that is not known is for the watch to show.
    pub fn runtime_read(&self, runtime: Runtime) {
        let (key, version, text) = packed(runtime);
        let mut state = self.lock();
        let is_known = state.runtimes.version(&key) == Some(&*version);
        // Somebody else may have read it meanwhile.
        if is_known && matches!(state.runtime(&key), Kept::Evicted) {
            state.keep_runtime(&key, text);
        }
    }

    /// Takes in that a runtime is gone; returns the unfinished jobs that name it, which may say that they
    /// wait for another reason than that.
    pub fn remove_runtime(&self, key: &RuntimeKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        state.forget_runtime(key);
        state.jobs_naming(key)
    }

    /// Keeps of the runtimes of one kind only those in `listed`; returns the unfinished jobs that name
    /// another.
    pub fn retain_runtimes(&self, kind: &str, listed: &HashSet<RuntimeKey>) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let gone = |key: &&RuntimeKey| !listed.contains(key);
        let gone: Vec<_> = state.runtimes.keys(kind).filter(gone).cloned().collect();
        for key in &gone {
            state.forget_runtime(key);
        }
        gone.iter().flat_map(|key| state.jobs_naming(key)).collect()
    }

    /// The runtime with this text, read now and kept for those who need it next.
    pub(super) fn parsed_runtime(&self, key: RuntimeKey, text: Arc<str>) -> Option<Arc<Runtime>> {
        // It was written from an object of this type.
        let TrainingRuntime { metadata, spec } = serde_json::from_str(&text).ok()?;
        let runtime = Runtime { key, metadata, spec };
        Some(self.lock().runtimes.parsed(text, runtime))
    }
}

/// Key and version of a runtime, and what is kept of it as text.
fn packed(runtime: Runtime) -> (RuntimeKey, Box<str>, Option<Arc<str>>) {
    let Runtime { key, mut metadata, spec } = runtime;
    let version = metadata.resource_version.clone().unwrap_or_default();
    metadata.managed_fields = None;
    // What was read from JSON can be written as JSON.
    let text = serde_json::to_string(&TrainingRuntime { metadata, spec }).ok();
    (key, version.into(), text.map(Arc::from))
}

/// Where its text is kept: under a name that no TrainJob can have.
fn place(key: &RuntimeKey) -> ObjectKey {
    let (namespace, name) = match key {
        RuntimeKey::Cluster { name } => ("", name),
        RuntimeKey::Namespaced { namespace, name } => (&**namespace, name),
    };
    ObjectKey::new(namespace, format!("{}/{name}", key.kind()))
}

impl State {
    /// What is kept of a runtime.
    pub(super) fn runtime(&mut self, key: &RuntimeKey) -> Kept {
        if self.runtimes.version(key).is_none() {
            return Kept::Absent;
        }
        let text = self.manifests.get(&place(key));
        text.map_or(Kept::Evicted, |text| self.runtimes.with_text(text))
    }

    /// How long the text of a runtime is, if it is kept.
    pub(super) fn runtime_length(&self, key: &RuntimeKey) -> Option<usize> {
        self.manifests.get(&place(key)).map(|text| text.len())
    }

    fn keep_runtime(&mut self, key: &RuntimeKey, text: Option<Arc<str>>) {
        match text {
            Some(text) => self.manifests.put(Of::Runtime, &place(key), text),
            None => self.manifests.remove(&place(key)),
        }
    }

    /// The unfinished jobs that name a runtime. It looks at all jobs, which takes a fraction of what to look at one of these does.
    fn jobs_naming(&self, runtime: &RuntimeKey) -> Vec<ObjectKey> {
        let Some(number) = self.named_runtimes.number(runtime) else { return Vec::new() };
        let naming = self.jobs.iter().filter(|(_, job)| job.runtime() == Some(number));
        naming.map(|(key, _)| key.clone()).collect()
    }

    fn forget_runtime(&mut self, key: &RuntimeKey) {
        self.runtimes.remove(key);
        self.keep_runtime(key, None);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trainjob_api::TrainJob;
    use trainjob_engine::versions::Source;

    use super::*;

    fn runtime(key: &RuntimeKey, version: &str, bytes: usize) -> Runtime {
        let (namespace, name) = match key {
            RuntimeKey::Cluster { name } => (None, name),
            RuntimeKey::Namespaced { namespace, name } => (Some(namespace), name),
        };
        let object = json!({
            "metadata": {"namespace": namespace, "name": name, "resourceVersion": version, "uid": "R",
                "labels": {"a": "b"}, "managedFields": [{"manager": "kubectl"}]},
            "spec": {
                "mlPolicy": {"numNodes": 2, "torch": {"numProcPerNode": "auto"}},
                "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {
                    "containers": [{"name": "node", "image": "x".repeat(bytes), "resources": {"limits": {"cpu": "1"}}}],
                }}}}}]}},
            },
        });
        let TrainingRuntime { metadata, spec } = serde_json::from_value(object).unwrap();
        Runtime { key: key.clone(), metadata, spec }
    }

    fn of_cluster() -> RuntimeKey {
        RuntimeKey::Cluster { name: "torch".into() }
    }

    fn of_namespace() -> RuntimeKey {
        RuntimeKey::Namespaced { namespace: "ns".into(), name: "torch".into() }
    }

    fn job(name: &str, runtime: &RuntimeKey) -> TrainJob {
        serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1"},
            "spec": {"runtimeRef": {"name": "torch", "kind": runtime.kind()}},
        }))
        .unwrap()
    }

    fn kept(cache: &Cache, key: &RuntimeKey) -> &'static str {
        match cache.lock().runtime(key) {
            Kept::Absent => "absent",
            Kept::Evicted => "evicted",
            Kept::Parsed(_) => "parsed",
            Kept::Text(_) => "text",
        }
    }

    #[test]
    fn runtime_is_what_was_put_but_for_managed_fields_and_is_read_from_its_text_once() {
        for key in [of_cluster(), of_namespace()] {
            let cache = Cache::new(1 << 20);
            let mut expected = runtime(&key, "1", 9);
            cache.put_runtime(expected.clone());
            expected.metadata.managed_fields = None;
            let job = job("job", &key);
            let job_key = cache.put_job(job, Source::Watch).unwrap();
            assert_eq!(kept(&cache, &key), "text");
            let first = cache.view(&job_key).unwrap().into_runtime().unwrap();
            assert_eq!(*first, expected);
            assert_eq!(kept(&cache, &key), "parsed");
            let again = cache.view(&job_key).unwrap().into_runtime().unwrap();
            assert!(Arc::ptr_eq(&first, &again));
            let changed = runtime(&key, "2", 10);
            assert_eq!(cache.put_runtime(changed), std::slice::from_ref(&job_key));
            let changed = cache.view(&job_key).unwrap().into_runtime().unwrap();
            assert_eq!(changed.metadata.resource_version.as_deref(), Some("2"));
        }
    }

    #[test]
    fn runtime_that_made_room_is_known_to_be_there_and_comes_back_with_a_reply() {
        let (key, other) = (of_cluster(), of_namespace());
        let cache = Cache::new(10_000);
        cache.put_runtime(runtime(&key, "1", 6_000));
        cache.put_runtime(runtime(&other, "1", 6_000));
        assert_eq!((kept(&cache, &key), kept(&cache, &other)), ("evicted", "text"));
        assert_eq!(cache.sizes()[2..4], [1, 1]);
        cache.runtime_read(runtime(&key, "2", 6_000));
        assert_eq!(kept(&cache, &key), "evicted", "the watch has yet to show this version");
        cache.runtime_read(runtime(&key, "1", 6_000));
        assert_eq!((kept(&cache, &key), kept(&cache, &other)), ("text", "evicted"));
        cache.remove_runtime(&key);
        cache.runtime_read(runtime(&key, "1", 6_000));
        assert_eq!(kept(&cache, &key), "absent", "it is gone");
    }

    #[test]
    fn jobs_that_name_what_a_list_does_not_have_are_woken() {
        let cache = Cache::new(1 << 20);
        for key in [of_cluster(), of_namespace()] {
            cache.put_runtime(runtime(&key, "1", 9));
            cache.put_job(job(key.kind(), &key), Source::Watch);
        }
        let woken = cache.retain_runtimes("TrainingRuntime", &HashSet::new());
        assert_eq!(woken, [ObjectKey::new("ns", "TrainingRuntime")]);
        assert_eq!(
            (kept(&cache, &of_cluster()), kept(&cache, &of_namespace())),
            ("text", "absent")
        );
    }

    #[test]
    fn job_and_its_runtime_stay_together_however_small_the_room_is() {
        let (key, cache) = (of_namespace(), Cache::new(1));
        cache.put_runtime(runtime(&key, "1", 9));
        let job_key = cache.put_job(job("job", &key), Source::Watch).unwrap();
        let view = cache.view(&job_key).unwrap();
        assert!(!view.lacks_manifest() && view.into_runtime().is_some());
    }
}
