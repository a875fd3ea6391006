//! Who may stay when there are too many connections.
//!
//! A server that turns newcomers away can be closed by anybody who opens connections and says nothing.
//! Here a newcomer always has a place: when there are too many, the one that has waited longest without a
//! request gives way. Those with a request under way are never sent off. A request is under way once all of
//! it is there: somebody who sends slowly waits.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// The connections of a server.
#[derive(Debug)]
pub struct Connections {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    number: u64,
    open: HashMap<u64, Arc<Connection>>,
}

/// One connection.
#[derive(Debug)]
struct Connection {
    activity: Mutex<Activity>,
    sent_off: Notify,
    is_sent_off: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Activity {
    /// Requests under way.
    requests: usize,
    /// Since when it has been as it is.
    since: Instant,
    /// Whether there has been a request.
    was_used: bool,
}

impl Connections {
    /// Room for `most`.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default() })
    }

    /// A place for a new connection, for which another one may have to go; `None` if every one has a
    /// request under way.
    #[must_use]
    pub fn admit(self: &Arc<Self>) -> Option<Place> {
        let mut state = self.lock();
        if state.open.len() >= self.most {
            state.send_off_one()?;
        }
        state.number += 1;
        let number = state.number;
        let activity = Activity { requests: 0, since: Instant::now(), was_used: false };
        let connection = Arc::new(Connection {
            activity: Mutex::new(activity),
            sent_off: Notify::new(),
            is_sent_off: AtomicBool::new(false),
        });
        state.open.insert(number, Arc::clone(&connection));
        Some(Place { connections: Arc::clone(self), number, connection })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Sends off the one that has waited longest.
    fn send_off_one(&mut self) -> Option<()> {
        let waiting = self.open.iter().filter_map(|(number, connection)| {
            let activity = *connection.activity();
            (activity.requests == 0).then_some((activity.since, *number))
        });
        let (_, number) = waiting.min()?;
        let connection = self.open.remove(&number)?;
        connection.is_sent_off.store(true, Ordering::Relaxed);
        connection.sent_off.notify_one();
        Some(())
    }
}

impl Connection {
    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a connection, given back when dropped.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    number: u64,
    connection: Arc<Connection>,
}

impl Place {
    /// A request is under way until what this returns is dropped.
    #[must_use]
    pub fn request(&self) -> UnderWay {
        let mut activity = self.connection.activity();
        activity.requests += 1;
        activity.was_used = true;
        UnderWay(Arc::clone(&self.connection))
    }

    /// Whether there has been a request.
    #[must_use]
    pub fn was_used(&self) -> bool {
        self.connection.activity().was_used
    }

    /// Whether a request is under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.connection.activity().requests > 0
    }

    /// Waits until the connection has to go: because it was sent off, or has been without a request for
    /// too long, which is `first` before the first one and `idle` after.
    pub async fn gives_way(&self, first: Duration, idle: Duration) {
        loop {
            let Activity { requests, since, was_used } = *self.connection.activity();
            let longest = if was_used { idle } else { first };
            let until = if requests > 0 { Instant::now() + longest } else { since + longest };
            if self.connection.is_sent_off.load(Ordering::Relaxed) || until <= Instant::now() {
                return;
            }
            tokio::select! {
                () = self.connection.sent_off.notified() => return,
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().open.remove(&self.number);
    }
}

/// A request that is under way.
#[derive(Debug)]
pub struct UnderWay(Arc<Connection>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.requests = activity.requests.saturating_sub(1);
        activity.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(100);

    async fn is_sent_off(place: &Place) -> bool {
        tokio::time::timeout(Duration::ZERO, place.gives_way(FIRST, IDLE)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_one_that_has_waited_longest_gives_way() {
        let connections = Connections::new(3);
        let [first, second, third] = std::array::from_fn(|_| connections.admit().unwrap());
        let under_way = first.request();
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(third.request());
        let fourth = connections.admit().unwrap();
        assert!(is_sent_off(&second).await);
        for stays in [&first, &third, &fourth] {
            assert!(!is_sent_off(stays).await);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(under_way);
        let _fifth = connections.admit().unwrap();
        assert!(is_sent_off(&third).await && !is_sent_off(&first).await);
    }

    #[tokio::test(start_paused = true)]
    async fn those_with_a_request_stay() {
        let connections = Connections::new(2);
        let places = [connections.admit().unwrap(), connections.admit().unwrap()];
        let under_way = places.each_ref().map(Place::request);
        assert!(connections.admit().is_none());
        drop(under_way);
        assert!(connections.admit().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_given_back() {
        let connections = Connections::new(1);
        for _ in 0..3 {
            let place = connections.admit().unwrap();
            assert!(!is_sent_off(&place).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_is_not_waited_for_as_long_as_the_next() {
        let connections = Connections::new(9);
        let (unused, used) = (connections.admit().unwrap(), connections.admit().unwrap());
        drop(used.request());
        let begin = Instant::now();
        unused.gives_way(FIRST, IDLE).await;
        assert_eq!(begin.elapsed(), FIRST);
        used.gives_way(FIRST, IDLE).await;
        assert_eq!(begin.elapsed(), IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_request_is_waited_for() {
        let place = Connections::new(9).admit().unwrap();
        let under_way = place.request();
        tokio::time::advance(IDLE * 3).await;
        assert!(!is_sent_off(&place).await);
        drop(under_way);
        let begin = Instant::now();
        place.gives_way(FIRST, IDLE).await;
        assert_eq!(begin.elapsed(), IDLE);
    }
}
