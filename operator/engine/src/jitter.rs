//! Waits that differ, so that what failed together is not tried again together.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// A wait somewhere in the upper half of `full`.
#[must_use]
pub fn jitter(full: Duration) -> Duration {
    let part = RandomState::new().build_hasher().finish() % 512;
    full / 2 + full * u32::try_from(part).unwrap_or(0) / 1024
}
