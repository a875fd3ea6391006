//! What is known of runtimes beside their texts.

mod parsed;

use std::{collections::HashMap, sync::Arc};

use trainjob_core::build::{Runtime, RuntimeKey};

use self::parsed::Parsed;

/// Which runtimes there are, and some of them as types.
#[derive(Debug, Default)]
pub(super) struct KeptRuntimes {
    /// The version of each that there is.
    versions: HashMap<RuntimeKey, Box<str>>,
    /// Those that were read from their texts last.
    parsed: Parsed,
}

/// A runtime as it is kept.
#[derive(Debug, Clone)]
pub(super) enum Kept {
    /// There is none.
    Absent,
    /// It has made room for others.
    Evicted,
    /// It was read from its text already.
    Parsed(Arc<Runtime>),
    /// Its text.
    Text(Arc<str>),
}

impl KeptRuntimes {
    /// How many of a kind there are.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.keys(kind).count()
    }

    /// Those of a kind.
    pub(super) fn keys(&self, kind: &str) -> impl Iterator<Item = &RuntimeKey> {
        self.versions.keys().filter(move |key| key.kind() == kind)
    }

    /// The version of one, if it is there.
    pub(super) fn version(&self, key: &RuntimeKey) -> Option<&str> {
        self.versions.get(key).map(|version| &**version)
    }

    /// Takes in one.
    pub(super) fn put(&mut self, key: &RuntimeKey, version: Box<str>) {
        self.parsed.forget(key);
        self.versions.insert(key.clone(), version);
    }

    /// Takes in that one is gone.
    pub(super) fn remove(&mut self, key: &RuntimeKey) {
        self.parsed.forget(key);
        self.versions.remove(key);
    }

    /// One that is there, with this text.
    pub(super) fn with_text(&mut self, text: Arc<str>) -> Kept {
        self.parsed.get(&text).map_or(Kept::Text(text), Kept::Parsed)
    }

    /// Keeps one that was read from this text; returns the one that is kept.
    pub(super) fn parsed(&mut self, text: Arc<str>, runtime: Runtime) -> Arc<Runtime> {
        self.parsed.put(text, runtime)
    }
}
