//! The runtimes that were read from their texts last.
//!
//! In a burst, many jobs name the same runtime, and each is looked at several times. Its text is read once for all of them.

use std::{collections::VecDeque, sync::Arc};

use trainjob_core::build::{Runtime, RuntimeKey};

/// How long the texts may be together. As types, they take some times as much.
const ROOM: usize = 64 << 10;

/// Runtimes, each with the text that it was read from.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    bytes: usize,
    /// The one that was used last comes last.
    runtimes: VecDeque<(Arc<str>, Arc<Runtime>)>,
}

impl Parsed {
    /// The runtime with this very text.
    pub(super) fn get(&mut self, text: &Arc<str>) -> Option<Arc<Runtime>> {
        let at = self.runtimes.iter().position(|(kept, _)| Arc::ptr_eq(kept, text))?;
        let (text, runtime) = self.runtimes.remove(at)?;
        self.runtimes.push_back((text, Arc::clone(&runtime)));
        Some(runtime)
    }

    /// Keeps one that was read from this text, if there is room, and unless somebody else has read it meanwhile; returns it.
    pub(super) fn put(&mut self, text: Arc<str>, runtime: Runtime) -> Arc<Runtime> {
        if let Some(known) = self.get(&text) {
            return known;
        }
        let runtime = Arc::new(runtime);
        if text.len() > ROOM {
            return runtime;
        }
        self.bytes += text.len();
        self.runtimes.push_back((text, Arc::clone(&runtime)));
        while self.bytes > ROOM
            && let Some((oldest, _)) = self.runtimes.pop_front()
        {
            self.bytes -= oldest.len();
        }
        runtime
    }

    /// Keeps a runtime that has changed or is gone no longer.
    pub(super) fn forget(&mut self, key: &RuntimeKey) {
        self.runtimes.retain(|(_, runtime)| runtime.key != *key);
        self.bytes = self.runtimes.iter().map(|(text, _)| text.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use trainjob_api::v1alpha1::runtime::TrainingRuntimeSpec;

    use super::*;

    fn key(name: &str) -> RuntimeKey {
        RuntimeKey::Cluster { name: name.into() }
    }

    fn runtime(name: &str) -> Runtime {
        Runtime {
            key: key(name),
            metadata: ObjectMeta::default(),
            spec: TrainingRuntimeSpec::default(),
        }
    }

    fn text(bytes: usize) -> Arc<str> {
        "x".repeat(bytes).into()
    }

    #[test]
    fn text_is_read_once_and_what_was_not_used_for_longest_makes_room() {
        let mut parsed = Parsed::default();
        let texts = [text(ROOM / 2), text(ROOM / 2), text(ROOM / 2)];
        let [a, b, c] = &texts;
        let first = parsed.put(Arc::clone(a), runtime("a"));
        assert!(Arc::ptr_eq(&first, &parsed.put(Arc::clone(a), runtime("a"))));
        parsed.put(Arc::clone(b), runtime("b"));
        assert!(parsed.get(a).is_some_and(|it| Arc::ptr_eq(&it, &first)));
        parsed.put(Arc::clone(c), runtime("c"));
        assert_eq!(texts.each_ref().map(|text| parsed.get(text).is_some()), [true, false, true]);
    }

    #[test]
    fn one_that_is_longer_than_there_is_room_is_not_kept_and_lets_the_others_stay() {
        let mut parsed = Parsed::default();
        let (short, long) = (text(ROOM), text(ROOM + 1));
        parsed.put(Arc::clone(&short), runtime("short"));
        parsed.put(Arc::clone(&long), runtime("long"));
        assert_eq!([&short, &long].map(|text| parsed.get(text).is_some()), [true, false]);
        assert_eq!(parsed.bytes, ROOM);
    }

    #[test]
    fn one_that_changed_is_forgotten() {
        let mut parsed = Parsed::default();
        let texts = [text(1), text(2)];
        for (text, name) in texts.iter().zip(["a", "b"]) {
            parsed.put(Arc::clone(text), runtime(name));
        }
        parsed.forget(&key("a"));
        assert_eq!(texts.each_ref().map(|text| parsed.get(text).is_some()), [false, true]);
        assert_eq!(parsed.bytes, 2);
    }
}
