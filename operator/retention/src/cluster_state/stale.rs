//! Namespaces of a kind that have to be looked at again, in slices (`docs/retention.md`, R63).
//!
//! An edit of a namespace changes which policies apply to the objects in it. Their places in groups are noted first, and
//! then each is looked at. What is not reached yet is late, and not wrong: a look right before a request plans anew.

use std::{collections::BTreeMap, sync::Arc};

use trainjob_core::facts::ObjectKey;

/// How far a namespace is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Whether places are noted, so that objects are looked at.
    pub(super) is_placed: bool,
    /// Up to which object; `None`: none.
    pub(super) after: Option<ObjectKey>,
}

/// Namespaces that have to be looked at again.
#[derive(Debug, Default)]
pub(super) struct Stale(BTreeMap<Arc<str>, Progress>);

impl Stale {
    /// These have to be, from the beginning.
    pub(super) fn add<'n>(&mut self, namespaces: impl IntoIterator<Item = &'n Arc<str>>) {
        let begin = |namespace: &Arc<str>| (Arc::clone(namespace), Progress::default());
        self.0.extend(namespaces.into_iter().map(begin));
    }

    /// All are looked at anyway.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes one of them out.
    pub(super) fn take(&mut self) -> Option<(Arc<str>, Progress)> {
        self.0.pop_first()
    }

    /// One that was taken out is not done yet.
    pub(super) fn put_back(&mut self, namespace: Arc<str>, progress: Progress) {
        self.0.insert(namespace, progress);
    }
}
