//! A length of time as the API has it.

/// Whole seconds, 0 to 2147483647 (68 years).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seconds(u32);

impl Seconds {
    /// None.
    pub const ZERO: Self = Self(0);
    /// The most that a field can say.
    pub const MAX: Self = Self(i32::MAX.unsigned_abs());

    /// So many seconds, if a field may say that.
    #[must_use]
    pub fn new(seconds: i64) -> Option<Self> {
        u32::try_from(seconds).ok().map(Self).filter(|seconds| *seconds <= Self::MAX)
    }

    /// The number of seconds.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0 as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_neither_negative_nor_beyond_the_range_of_the_field() {
        for (seconds, expected) in [
            (0, Some(0)),
            (1, Some(1)),
            (2_147_483_647, Some(2_147_483_647)),
            (2_147_483_648, None),
            (-1, None),
            (i64::MAX, None),
            (i64::MIN, None),
        ] {
            assert_eq!(Seconds::new(seconds).map(Seconds::get), expected, "{seconds}");
        }
    }
}
