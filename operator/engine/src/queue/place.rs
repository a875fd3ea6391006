//! A place among the requests under way.

use std::sync::Arc;

use tokio::time::Instant;

use super::Queue;
use crate::shares::{Flow, PlaceId};

/// A place, given back when the last copy is dropped.
///
/// Whoever works on a key has one copy. A request that is not waited for any more keeps another until it is answered, so
/// that it counts as under way for as long as it is.
#[derive(Debug, Clone)]
pub struct Place(Arc<Held>);

#[derive(Debug)]
struct Held {
    queue: Arc<Queue>,
    id: PlaceId,
}

impl Place {
    pub(super) fn new(queue: Arc<Queue>, id: PlaceId) -> Self {
        Self(Arc::new(Held { queue, id }))
    }

    /// Uses it for a request of this flow. False if too many of those are under way: the key has to wait for its turn in
    /// that flow.
    #[must_use]
    pub fn enter(&self, flow: &Flow) -> bool {
        self.0.queue.lock().shares.enter(self.0.id, flow, Instant::now())
    }

    /// The request is sent. It is under way until what this returns is dropped.
    #[must_use]
    pub fn ask(&self) -> UnderWay {
        self.0.queue.lock().shares.asked(self.0.id, Instant::now());
        UnderWay(self.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.queue.lock().shares.give_back(self.id);
        self.queue.work.notify_one();
    }
}

/// A request under way.
#[derive(Debug)]
pub struct UnderWay(Place);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let held = &self.0.0;
        held.queue.lock().shares.answered(held.id, Instant::now());
        held.queue.work.notify_one();
    }
}
