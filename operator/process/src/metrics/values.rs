//! The values of a label whose number is bounded.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

/// The values that a label has had. The first so many are shown, and all later ones as one other.
///
/// A value is never forgotten, because counters go on showing it.
#[derive(Debug)]
pub struct Values {
    most: usize,
    other: &'static str,
    known: Mutex<BTreeSet<Arc<str>>>,
}

impl Values {
    /// None so far, and so many at most, beside `other`, which stands for all that find no room.
    #[must_use]
    pub const fn new(most: usize, other: &'static str) -> Self {
        Self { most, other, known: Mutex::new(BTreeSet::new()) }
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
            return self.other.into();
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
        let values = Values::new(2, "other");
        for (value, expected) in
            [("a", "a"), ("b", "b"), ("c", "other"), ("a", "a"), ("d", "other"), ("b", "b")]
        {
            assert_eq!(&*values.shown(value), expected);
        }
    }
}
