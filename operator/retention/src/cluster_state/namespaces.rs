//! The namespaces, as far as policies depend on them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use trainjob_retention_core::{
    interner::Interner,
    labels::{LabelKeys, Labels},
    metadata::Metadata,
    policy::Namespace,
};

/// What is known of a namespace.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    labels: BTreeMap<String, String>,
    terminating: bool,
}

/// All namespaces.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    known: HashMap<Arc<str>, Known>,
    /// Those that the list under way has not shown yet.
    missing: BTreeSet<Arc<str>>,
    excluded: BTreeSet<Arc<str>>,
    is_listed: bool,
    interner: Interner,
}

impl Namespaces {
    /// None are known yet. These are excluded (R37).
    pub(super) fn new(excluded: BTreeSet<Arc<str>>) -> Self {
        Self { excluded, ..Self::default() }
    }

    /// Whether all are known.
    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// A list begins.
    pub(super) fn list_begins(&mut self) {
        self.missing = self.known.keys().cloned().collect();
    }

    /// A list has ended. Returns the namespaces that are gone.
    pub(super) fn list_ends(&mut self) -> BTreeSet<Arc<str>> {
        self.is_listed = true;
        let gone = std::mem::take(&mut self.missing);
        self.known.retain(|name, _| !gone.contains(name));
        gone
    }

    /// A namespace is there. Returns its name if anything about it is new.
    pub(super) fn seen(&mut self, metadata: Metadata) -> Option<Arc<str>> {
        let name = self.interner.intern(&metadata.name);
        self.missing.remove(&name);
        let terminating = metadata.deletion_timestamp.is_some();
        let known = Known { labels: metadata.labels, terminating };
        if self.known.get(&name) == Some(&known) {
            return None;
        }
        self.known.insert(Arc::clone(&name), known);
        Some(name)
    }

    /// A namespace is gone.
    pub(super) fn gone(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// A namespace, with the labels of these keys. One that is not known counts as one that is being deleted: nothing is
    /// done in it.
    pub(super) fn get(&mut self, name: &Arc<str>, keys: &LabelKeys) -> Namespace {
        let known = self.known.get(name);
        let none = BTreeMap::new();
        let labels = known.map_or(&none, |known| &known.labels);
        Namespace {
            name: Arc::clone(name),
            labels: Labels::read(labels, keys, &mut self.interner),
            terminating: known.is_none_or(|known| known.terminating),
            excluded: self.excluded.contains(name),
        }
    }
}
