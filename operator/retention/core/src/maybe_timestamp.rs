//! An instant that may not be there, in the room of an instant.
//!
//! A record has several, and there are a hundred thousand records. `Option<Timestamp>` takes twice the room.

use std::fmt;

use trainjob_api::time::Timestamp;

/// An instant, or none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MaybeTimestamp(i64);

/// No instant that can be written is so early.
const NONE: i64 = i64::MIN;

impl MaybeTimestamp {
    /// None.
    pub const NONE: Self = Self(NONE);

    /// The instant, if there is one.
    #[must_use]
    pub const fn get(self) -> Option<Timestamp> {
        match self.0 {
            NONE => None,
            seconds => Some(Timestamp(seconds)),
        }
    }
}

impl Default for MaybeTimestamp {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Option<Timestamp>> for MaybeTimestamp {
    fn from(instant: Option<Timestamp>) -> Self {
        instant.map_or(Self::NONE, Self::from)
    }
}

impl From<Timestamp> for MaybeTimestamp {
    fn from(Timestamp(seconds): Timestamp) -> Self {
        Self(seconds)
    }
}

impl fmt::Debug for MaybeTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out() {
        for instant in
            [None, Some(Timestamp(0)), Some(Timestamp(i64::MIN + 1)), Some(Timestamp(i64::MAX))]
        {
            assert_eq!(MaybeTimestamp::from(instant).get(), instant);
        }
        assert_eq!(MaybeTimestamp::default().get(), None);
        assert_eq!(size_of::<MaybeTimestamp>(), size_of::<Timestamp>());
    }
}
