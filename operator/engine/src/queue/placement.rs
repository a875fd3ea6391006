//! Where a key belongs in the queue.

use trainjob_api::time::Timestamp;
use trainjob_core::queue_position::{Begins, QueuePosition};

/// Where a key belongs in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement<P> {
    /// Where its next pass waits.
    pub position: QueuePosition<P>,
    /// When time alone gives it a better one, however long it waits in this; `None`: it does not.
    pub rises_at: Option<Timestamp>,
    /// From when on it is worked on by a process that takes over.
    pub begins: Begins,
}

impl<P> From<QueuePosition<P>> for Placement<P> {
    /// A position that stays the same.
    fn from(position: QueuePosition<P>) -> Self {
        Self { position, rises_at: None, begins: Begins::First }
    }
}
