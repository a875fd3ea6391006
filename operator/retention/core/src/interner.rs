//! Texts, and what is made of them, that many records share.
//!
//! A hundred thousand objects have a few namespaces, reasons, label values, and combinations of these between them.

use std::{collections::HashSet, sync::Arc};

use crate::outcome::Ending;

/// So much is kept before the first look for those that nobody has any more.
const SWEEP_FROM: usize = 1_024;

/// Some texts in their order; `None` where there is none.
pub type Row = Arc<Vec<Option<Arc<str>>>>;

/// Gives equal texts the same place in memory, and so equal rows of texts and equal endings.
#[derive(Debug)]
pub struct Interner {
    texts: HashSet<Arc<str>>,
    rows: HashSet<Row>,
    endings: HashSet<Arc<Ending>>,
    /// With how many of all it is looked again for those that nobody has any more.
    sweep_at: usize,
}

impl Default for Interner {
    fn default() -> Self {
        Self {
            texts: HashSet::new(),
            rows: HashSet::new(),
            endings: HashSet::new(),
            sweep_at: SWEEP_FROM,
        }
    }
}

impl Interner {
    /// The shared copy of a text.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.texts.get(text) {
            return Arc::clone(shared);
        }
        self.sweep();
        let shared: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&shared));
        shared
    }

    /// The shared copy of some texts.
    pub fn intern_row<'t>(&mut self, texts: impl IntoIterator<Item = Option<&'t str>>) -> Row {
        let texts = texts.into_iter().map(|text| text.map(|text| self.intern(text)));
        let mut row: Vec<_> = texts.collect();
        if let Some(shared) = self.rows.get(&row) {
            return Arc::clone(shared);
        }
        self.sweep();
        row.shrink_to_fit();
        let shared = Row::new(row);
        self.rows.insert(Arc::clone(&shared));
        shared
    }

    /// The shared copy of an ending.
    pub fn intern_ending(&mut self, ending: Ending) -> Arc<Ending> {
        if let Some(shared) = self.endings.get(&ending) {
            return Arc::clone(shared);
        }
        self.sweep();
        let shared = Arc::new(ending);
        self.endings.insert(Arc::clone(&shared));
        shared
    }

    /// How many texts, rows and endings there are.
    fn len(&self) -> usize {
        self.texts.len() + self.rows.len() + self.endings.len()
    }

    /// Forgets what nobody has any more, each time that there is twice as much: texts come and go with their objects.
    fn sweep(&mut self) {
        if self.len() >= self.sweep_at {
            self.forget_unused();
            self.sweep_at = (2 * self.len()).max(SWEEP_FROM);
        }
    }

    /// Forgets the texts that nobody has any more. For now and then: it looks at all of them.
    pub fn forget_unused(&mut self) {
        self.rows.retain(|row| Arc::strong_count(row) > 1);
        self.rows.shrink_to_fit();
        self.endings.retain(|ending| Arc::strong_count(ending) > 1);
        self.endings.shrink_to_fit();
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

    #[test]
    fn texts_that_come_and_go_do_not_pile_up() {
        let mut interner = Interner::default();
        let kept: Vec<_> =
            (0..10).map(|number| interner.intern(&format!("kept {number}"))).collect();
        for number in 0..10 * SWEEP_FROM {
            interner.intern_row([Some(&*format!("of one object, {number}"))]);
        }
        assert!(interner.len() <= SWEEP_FROM);
        assert!(kept.iter().all(|text| Arc::ptr_eq(text, &interner.intern(text))));
    }

    #[test]
    fn equal_rows_are_one_until_nobody_has_them() {
        let mut interner = Interner::default();
        let first = interner.intern_row([Some("vision"), None]);
        assert!(Arc::ptr_eq(&first, &interner.intern_row([Some("vision"), None])));
        let second = interner.intern_row([None, Some("vision")]);
        drop(first);
        interner.forget_unused();
        assert_eq!((interner.rows.len(), interner.texts.len()), (1, 1));
        drop(second);
        interner.forget_unused();
        assert_eq!((interner.rows.len(), interner.texts.len()), (0, 0));
    }
}
