//! The values of a label whose number is bounded.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

/// The value that stands for all that found no room.
const OTHER: &str = "other";

/// The values that a label has had. The first so many are shown, and all later ones as `other`.
///
/// A value is never forgotten, because counters go on showing it.
#[derive(Debug)]
pub struct Values {
    most: usize,
    known: Mutex<BTreeSet<Arc<str>>>,
}

impl Values {
    /// None so far, and so many at most, beside `other`.
    pub(super) const fn new(most: usize) -> Self {
        Self { most, known: Mutex::new(BTreeSet::new()) }
    }

    /// As what a value is shown.
    #[must_use]
    pub fn shown(&self, value: &str) -> Arc<str> {
        // A set that was left in the middle of an insertion misses a value at worst.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(value) {
            return Arc::clone(known);
        }
        if known.len() >= self.most {
            return OTHER.into();
        }
        let value: Arc<str> = value.into();
        known.insert(Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_values_keep_their_names_and_later_ones_are_other() {
        let values = Values::new(2);
        for (value, expected) in
            [("a", "a"), ("b", "b"), ("c", "other"), ("a", "a"), ("d", "other"), ("b", "b")]
        {
            assert_eq!(&*values.shown(value), expected);
        }
    }
}
