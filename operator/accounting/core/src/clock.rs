//! The time that decisions are made by.

use std::time::Duration;

use trainjob_api::time::Timestamp;

/// The time, by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// By the API server's Date.
    pub server: Timestamp,
    /// By this process's monotonic clock.
    pub clock: Duration,
}
