//! Chance that can be repeated: `SplitMix64`, the same numbers for the same seed on every machine.

/// A source of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The source that this seed gives.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    #[must_use]
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// A number from `first` to `last`.
    #[must_use]
    pub fn between(&mut self, first: i64, last: i64) -> i64 {
        let count = usize::try_from(last - first + 1).unwrap_or(0);
        first + i64::try_from(self.below(count)).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    #[must_use]
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of them.
    #[must_use]
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len())).copied()
    }

    /// One of them, each as often as its weight says.
    #[must_use]
    pub fn weighted<T: Copy>(&mut self, of: &[(usize, T)]) -> Option<T> {
        let mut left = self.below(of.iter().map(|(weight, _)| weight).sum());
        for (weight, one) in of {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return Some(*one),
            }
        }
        None
    }
}
