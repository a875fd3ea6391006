//! Namespaces and single objects of a kind that have to be looked at again, in slices (`docs/retention.md`, R63).
//!
//! An edit of a namespace changes which policies apply to the objects in it. Their places in groups are noted first, and
//! then each is looked at. What is not reached yet is late, and not wrong: a look right before a request plans anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use trainjob_core::facts::ObjectKey;

/// How far a namespace is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Whether places are noted, so that objects are looked at.
    pub(super) is_placed: bool,
    /// Up to which object; `None`: none.
    pub(super) after: Option<ObjectKey>,
}

/// What has to be looked at again.
#[derive(Debug, Default)]
pub(super) struct Stale {
    namespaces: BTreeMap<Arc<str>, Progress>,
    /// Objects that may be able to go because of others of their group.
    objects: BTreeSet<ObjectKey>,
}

impl Stale {
    /// These have to be, from the beginning.
    pub(super) fn add<'n>(&mut self, namespaces: impl IntoIterator<Item = &'n Arc<str>>) {
        let begin = |namespace: &Arc<str>| (Arc::clone(namespace), Progress::default());
        self.namespaces.extend(namespaces.into_iter().map(begin));
    }

    /// These objects have to be.
    pub(super) fn add_objects(&mut self, objects: impl IntoIterator<Item = ObjectKey>) {
        self.objects.extend(objects);
    }

    /// All are looked at anyway.
    pub(super) fn clear(&mut self) {
        self.namespaces.clear();
        self.objects.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.objects.is_empty()
    }

    /// Takes up to so many objects out.
    pub(super) fn take_objects(&mut self, count: usize) -> BTreeSet<ObjectKey> {
        let rest = self.objects.iter().nth(count).cloned();
        let rest = rest.map(|first| self.objects.split_off(&first)).unwrap_or_default();
        std::mem::replace(&mut self.objects, rest)
    }

    /// Takes a namespace out.
    pub(super) fn take(&mut self) -> Option<(Arc<str>, Progress)> {
        self.namespaces.pop_first()
    }

    /// One that was taken out is not done yet.
    pub(super) fn put_back(&mut self, namespace: Arc<str>, progress: Progress) {
        self.namespaces.insert(namespace, progress);
    }
}
