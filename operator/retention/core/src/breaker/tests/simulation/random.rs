//! A small generator of its own, so that a seed tells everything.

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From the first to before the second.
    pub(super) fn range(&mut self, from: i64, to: i64) -> i64 {
        let width = u64::try_from(to - from).unwrap();
        from + i64::try_from(self.next() % width).unwrap()
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.next() % length as u64).unwrap()
    }

    pub(super) fn percent(&mut self, chance: i64) -> bool {
        self.range(0, 100) < chance
    }
}
