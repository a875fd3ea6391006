//! How full the queue is, for whoever looks at metrics.

use std::time::Duration;

use tokio::time::Instant;
use trainjob_core::priority::Priority;

use super::Queue;

/// How full the queue is at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Whether there is somebody who works.
    pub open: bool,
    /// Requests under way, those included that nobody waits for any more.
    pub under_way: usize,
    /// What waits in each priority, in the order of [`Priority::ALL`].
    pub priorities: [Waiting; Priority::ALL.len()],
    /// Armed requeues.
    pub requeues: usize,
    /// Armed retries.
    pub retries: usize,
}

/// What waits in a priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// How many jobs.
    pub jobs: usize,
    /// How long the one has waited that waits longest; zero if there is none.
    pub longest: Duration,
}

impl Queue {
    /// How full it is. Looks at everything that waits.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let now = Instant::now();
        let mut state = self.lock();
        let priorities = Priority::ALL.map(|priority| {
            let waiting = state.priorities.of(priority);
            let first = waiting.waiters().map(|(_, since)| *since).min();
            let longest = first.map(|since| now.duration_since(since));
            Waiting { jobs: waiting.waiters().count(), longest: longest.unwrap_or_default() }
        });
        Numbers {
            open: !state.standby,
            under_way: self.places.shares().taken(),
            priorities,
            requeues: state.requeues.len(),
            retries: state.retries.len(),
        }
    }
}
