//! Texts that many records share.
//!
//! A hundred thousand objects have a few namespaces, reasons and label values between them.

use std::{collections::HashSet, sync::Arc};

/// Gives equal texts the same place in memory.
#[derive(Debug, Default)]
pub struct Interner {
    texts: HashSet<Arc<str>>,
}

impl Interner {
    /// The shared copy of a text.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.texts.get(text) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&shared));
        shared
    }

    /// Forgets the texts that nobody has any more. For now and then: it looks at all of them.
    pub fn forget_unused(&mut self) {
        self.texts.retain(|text| Arc::strong_count(text) > 1);
        self.texts.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_until_nobody_has_them() {
        let mut interner = Interner::default();
        let (first, second) = (interner.intern("BackoffLimitExceeded"), interner.intern("Evicted"));
        let again = interner.intern("BackoffLimitExceeded");
        assert!(Arc::ptr_eq(&first, &again));
        drop((first, again));
        interner.forget_unused();
        assert_eq!(interner.texts, [second].into());
    }
}
