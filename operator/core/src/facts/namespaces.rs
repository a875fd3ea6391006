//! The names of namespaces, each once.

use std::{collections::HashSet, sync::Arc};

use super::key::{Namespace, ObjectKey};

/// Names that are no longer used are dropped when there are so many, or twice as many as there were after that.
const SWEEP_FROM: usize = 64;

/// The namespaces that keys have in common.
#[derive(Debug, Default)]
pub struct Namespaces {
    names: HashSet<Namespace>,
    kept: usize,
}

impl Namespaces {
    /// The one copy of a name.
    pub fn the(&mut self, name: &Arc<str>) -> Namespace {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        if self.names.len() >= SWEEP_FROM.max(2 * self.kept) {
            self.names.retain(|name| Namespace::count(name) > 1);
            self.kept = self.names.len();
        }
        let new = Namespace::new(Arc::clone(name));
        self.names.insert(new.clone());
        new
    }

    /// A key that has its namespace in common with others.
    pub fn key(&mut self, key: &ObjectKey) -> ObjectKey {
        ObjectKey::within(self.the(&key.namespace), &key.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_kept_once_and_not_for_ever() {
        let mut namespaces = Namespaces::default();
        let first = namespaces.the(&"team".into());
        assert!(Namespace::ptr_eq(&first, &namespaces.the(&"team".into())));
        for number in 0..10 * SWEEP_FROM {
            namespaces.the(&format!("gone-{number}").into());
        }
        assert!(namespaces.names.len() <= SWEEP_FROM, "{}", namespaces.names.len());
        assert!(Namespace::ptr_eq(&first, &namespaces.the(&"team".into())), "it is still used");
    }
}
