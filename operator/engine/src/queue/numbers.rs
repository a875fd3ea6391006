//! How full the queue is, for whoever looks at metrics.

use std::time::Duration;

use tokio::time::Instant;
use trainjob_core::queue_position::{QueueKey, QueuePriority};

use super::{Queue, state::Phase};

/// How full the queue is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    /// Whether there is somebody who works on everything.
    pub open: bool,
    /// Requests under way, those included that nobody waits for any more.
    pub under_way: usize,
    /// What waits in each priority, in the order of [`QueuePriority::ALL`].
    pub priorities: Vec<Waiting>,
    /// Armed requeues.
    pub requeues: usize,
    /// Armed retries.
    pub retries: usize,
}

/// What waits in a priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// How many keys.
    pub keys: usize,
    /// How long the one has waited that waits longest; zero if there is none.
    pub longest: Duration,
}

impl<K: QueueKey, P: QueuePriority> Queue<K, P> {
    /// How many flows of requests are [slow](crate::shares).
    #[must_use]
    pub fn slow_flows(&self) -> usize {
        self.places.shares().slow_flows(Instant::now())
    }

    /// How full it is. Looks at everything that waits.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let now = Instant::now();
        let state = self.lock();
        let waiting = |priority: &P| {
            let since = || state.since(*priority);
            let longest = since().min().map(|first| now.duration_since(first));
            Waiting { keys: since().count(), longest: longest.unwrap_or_default() }
        };
        let priorities = P::ALL.iter().map(waiting).collect();
        Numbers {
            open: state.phase == Phase::Open,
            under_way: self.places.shares().taken(),
            priorities,
            requeues: state.requeues.len(),
            retries: state.retries.len(),
        }
    }
}
