//! Whose counts were written lately.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use super::postpone::COUNTS_EVERY;
use crate::facts::ObjectKey;

/// When the counts of a job were last written, for as long as that matters. A hundred thousand jobs may have had theirs
/// written at some time, so those of which it does not matter any more are forgotten when the next are written.
#[derive(Debug, Default)]
pub(super) struct Counted {
    at: HashMap<ObjectKey, Duration>,
    /// All of them, and those that were written again since, the earliest first.
    order: VecDeque<(Duration, ObjectKey)>,
}

impl Counted {
    /// When those of a job were written.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Duration> {
        self.at.get(key).copied()
    }

    /// Those of a job were written at `at`, which is no earlier than that of any other; `None`: it does not matter any more.
    pub(super) fn set(&mut self, key: &ObjectKey, at: Option<Duration>) {
        let Some(at) = at else {
            self.at.remove(key);
            return;
        };
        if self.at.insert(key.clone(), at) == Some(at) {
            return;
        }
        self.order.push_back((at, key.clone()));
        while let Some((before, key)) =
            self.order.pop_front_if(|(before, _)| *before + COUNTS_EVERY <= at)
        {
            if self.at.get(&key) == Some(&before) {
                self.at.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_any_more_takes_no_room() {
        let key = |number: u64| ObjectKey::new("ns", number.to_string());
        let at = |number: u64| COUNTS_EVERY / 2 * u32::try_from(number).unwrap();
        let mut counted = Counted::default();
        for number in 0..100 {
            counted.set(&key(number), Some(at(number)));
            // Written again at once, and asked for without a change.
            counted.set(&key(number), Some(at(number)));
        }
        assert_eq!((counted.at.len(), counted.order.len()), (2, 2));
        assert_eq!(counted.get(&key(99)), Some(at(99)));
        assert_eq!(counted.get(&key(97)), None);
        counted.set(&key(98), Some(at(99)));
        counted.set(&key(100), Some(at(100)));
        assert_eq!(counted.get(&key(98)), Some(at(99)), "it was written again");
        counted.set(&key(98), None);
        assert_eq!(counted.get(&key(98)), None);
    }
}
