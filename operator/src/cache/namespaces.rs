//! The names of namespaces, each once.

use std::{collections::HashSet, sync::Arc};

/// Names that are no longer used are dropped when there are so many, or twice as many as there were after that.
const SWEEP_FROM: usize = 64;

/// The names that keys have in common.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    names: HashSet<Arc<str>>,
    kept: usize,
}

impl Namespaces {
    /// The one copy of a name.
    pub(super) fn the(&mut self, name: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        if self.names.len() >= SWEEP_FROM.max(2 * self.kept) {
            self.names.retain(|name| Arc::strong_count(name) > 1);
            self.kept = self.names.len();
        }
        self.names.insert(Arc::clone(name));
        Arc::clone(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_kept_once_and_not_for_ever() {
        let mut namespaces = Namespaces::default();
        let first = namespaces.the(&"team".into());
        assert!(Arc::ptr_eq(&first, &namespaces.the(&"team".into())));
        for number in 0..10 * SWEEP_FROM {
            namespaces.the(&format!("gone-{number}").into());
        }
        assert!(namespaces.names.len() <= SWEEP_FROM, "{}", namespaces.names.len());
        assert!(Arc::ptr_eq(&first, &namespaces.the(&"team".into())), "it is still used");
    }
}
