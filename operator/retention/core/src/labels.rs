//! The labels of an object that somebody reads.
//!
//! Policies say which keys they read, and records have the values of those alone (`docs/retention.md`, R60). When a new
//! policy reads a key that nobody read before, a record does not tell whether its object has such a label. Taking it for
//! absent could delete what the label keeps, so labels know which keys they were read for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::interner::{Interner, Row};

/// Keys of labels, each once. Copies share their memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelKeys(Arc<Vec<Arc<str>>>);

/// The labels of an object with some keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    keys: LabelKeys,
    /// One for each key; `None` where the object has no such label.
    values: Row,
}

impl LabelKeys {
    /// Whether all keys of the others are among these.
    #[must_use]
    pub fn include(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.0, &others.0) || others.0.iter().all(|key| self.0.contains(key))
    }

    /// The keys in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
    }
}

impl FromIterator<Arc<str>> for LabelKeys {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(keys: I) -> Self {
        let keys: BTreeSet<_> = keys.into_iter().collect();
        Self(Arc::new(keys.into_iter().collect()))
    }
}

impl Labels {
    /// Those of the labels that have one of these keys.
    #[must_use]
    pub fn read(all: &BTreeMap<String, String>, keys: &LabelKeys, interner: &mut Interner) -> Self {
        let value = |key: &Arc<str>| all.get(&**key).map(String::as_str);
        Self { keys: keys.clone(), values: interner.intern_row(keys.iter().map(value)) }
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Arc<str>> {
        // There are few keys.
        let values = self.keys.iter().zip(&*self.values);
        values.filter(|(own, _)| &***own == key).find_map(|(_, value)| value.as_ref())
    }

    /// Whether they tell about all of these keys.
    #[must_use]
    pub fn tell(&self, keys: &LabelKeys) -> bool {
        self.keys.include(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> LabelKeys {
        keys.iter().map(|key| Arc::from(*key)).collect()
    }

    #[test]
    fn only_labels_that_are_read_are_kept() {
        let all = [("team", "a"), ("big", "text"), ("experiment", "7")];
        let all = all.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let read = keys(&["team", "queue", "experiment", "team"]);
        let labels = Labels::read(&all, &read, &mut Interner::default());
        let values = ["team", "experiment", "queue", "big"].map(|key| labels.get(key));
        assert_eq!(values.map(|it| it.map(|it| &**it)), [Some("a"), Some("7"), None, None]);
        assert_eq!(labels.values.len(), 3);
    }

    #[test]
    fn labels_know_what_they_tell() {
        let labels = Labels::read(&BTreeMap::new(), &keys(&["a", "b"]), &mut Interner::default());
        for (asked, expected) in [
            (keys(&[]), true),
            (keys(&["b"]), true),
            (keys(&["b", "a"]), true),
            (keys(&["c"]), false),
            (keys(&["a", "b", "c"]), false),
        ] {
            assert_eq!(labels.tell(&asked), expected, "{asked:?}");
        }
        assert!(labels.tell(&labels.keys) && !Labels::default().tell(&labels.keys));
    }
}
