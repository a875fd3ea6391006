//! Small bodies of which not all has come yet. When there is no room for another, the one that began first gives way.
//!
//! Without that, whoever sends beginnings of bodies and nothing more would take all the room for as long as a body may take.
//! What the API server sends is complete within milliseconds.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit},
    time::Instant,
};

/// For how long a body has its room for certain.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// The bodies, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Unfinished(Mutex<Bodies>);

#[derive(Debug, Default)]
struct Bodies {
    begun: u64,
    by_number: BTreeMap<u64, Body>,
}

#[derive(Debug)]
struct Body {
    since: Instant,
    room: OwnedSemaphorePermit,
    gave_way: Arc<Notify>,
}

/// A body that is coming in. Its room is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Coming<'a> {
    all: &'a Unfinished,
    number: u64,
    gave_way: Arc<Notify>,
}

impl Unfinished {
    /// A body begins, and has this room.
    pub(super) fn begin(&self, room: OwnedSemaphorePermit) -> Coming<'_> {
        let gave_way = Arc::new(Notify::new());
        let mut bodies = self.lock();
        let number = bodies.begun;
        bodies.begun += 1;
        let body = Body { since: Instant::now(), room, gave_way: Arc::clone(&gave_way) };
        bodies.by_number.insert(number, body);
        Coming { all: self, number, gave_way }
    }

    /// Takes the room of the body that began first, but of none within its [`GRACE`]. Whether there was one.
    pub(super) fn first_gives_way(&self) -> bool {
        let mut bodies = self.lock();
        let Some(first) = bodies.by_number.first_entry() else { return false };
        if first.get().since.elapsed() < GRACE {
            return false;
        }
        first.remove().gave_way.notify_one();
        true
    }

    // Every change under the lock is complete in itself, so a poisoned state is still a good one.
    fn lock(&self) -> MutexGuard<'_, Bodies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Coming<'_> {
    /// Takes more room; whether it still had any.
    pub(super) fn grow(&self, more: OwnedSemaphorePermit) -> bool {
        let mut bodies = self.all.lock();
        let body = bodies.by_number.get_mut(&self.number);
        body.map(|body| body.room.merge(more)).is_some()
    }

    /// Waits until it has to give way.
    pub(super) async fn gives_way(&self) {
        self.gave_way.notified().await;
    }

    /// The room of a body that has come; `None` if it had to give way.
    pub(super) fn complete(self) -> Option<OwnedSemaphorePermit> {
        self.take()
    }

    fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.all.lock().by_number.remove(&self.number).map(|body| body.room)
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        mem::drop(self.take());
    }
}
