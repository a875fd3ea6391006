//! What a worker is given.

use std::time::Duration;

use trainjob_core::queue_position::QueuePriority;

use super::turns::Attempt;
use crate::places::Place;

/// What is worked on next.
#[derive(Debug)]
pub struct Next<K, P: QueuePriority> {
    /// What to work on.
    pub key: K,
    /// The priority it waited with.
    pub priority: P,
    /// For how long.
    pub waited: Duration,
    /// Whether it was tried before.
    pub attempt: Attempt,
    /// The place for its requests.
    pub place: Place<P>,
}
