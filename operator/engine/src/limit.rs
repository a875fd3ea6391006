//! The configured limit on requests to the API server.
//!
//! Without one, the number of workers bounds the load and the API server's own priority and fairness
//! governs. With one (`clientConnection`), requests take tokens from a bucket, and who gets the next
//! token is decided by priority, as everywhere else.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use trainjob_core::queue_position::QueuePriority;

/// Tokens that are refilled at a steady rate, up to a burst.
#[derive(Debug)]
pub struct Bucket {
    per_second: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    /// A full bucket of `burst` tokens, at least 1, to which `per_second` are added a second.
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        let per_second = per_second.max(f64::MIN_POSITIVE);
        Self { per_second, burst, tokens: burst, filled: Instant::now() }
    }

    /// Takes a token if at least `needed` are there.
    ///
    /// # Errors
    ///
    /// How long it is until there are that many, if nobody else takes one.
    pub fn take(&mut self, needed: f64) -> Result<(), Duration> {
        let now = Instant::now();
        let gained = now.duration_since(self.filled).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + gained).min(self.burst);
        self.filled = now;
        if self.tokens >= needed {
            self.tokens -= 1.0;
            return Ok(());
        }
        let wait = ((needed - self.tokens) / self.per_second).clamp(0.001, 1.0);
        Err(Duration::from_secs_f64(wait))
    }
}

/// A bucket whose tokens go to the best priority that waits.
#[derive(Debug)]
pub struct Limiter<P> {
    state: Mutex<State<P>>,
}

#[derive(Debug)]
struct State<P> {
    bucket: Bucket,
    /// How many requests wait, by priority.
    waiting: BTreeMap<P, usize>,
    turn: u8,
}

impl<P: QueuePriority> Limiter<P> {
    /// See [`Bucket::new`].
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Self {
        let bucket = Bucket::new(per_second, burst);
        Self { state: Mutex::new(State { bucket, waiting: BTreeMap::new(), turn: 1 }) }
    }

    /// Waits for a token.
    pub async fn acquire(&self, priority: P) {
        let _place = match self.try_take(priority) {
            Ok(()) => return,
            Err(_) => Place::new(self, priority),
        };
        loop {
            match self.try_take(priority) {
                Ok(()) => return,
                Err(wait) => tokio::time::sleep(wait).await,
            }
        }
    }

    /// A token, or how long it is until there may be one for this priority.
    fn try_take(&self, priority: P) -> Result<(), Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Tokens that priorities before it wait for are not there for this one.
        let before = P::order(state.turn).take_while(|other| *other != priority);
        let better: usize = before.filter_map(|other| state.waiting.get(&other)).sum();
        #[expect(clippy::cast_precision_loss, reason = "far fewer requests wait than 2^52")]
        let needed = better as f64 + 1.0;
        state.bucket.take(needed)?;
        state.turn = state.turn.wrapping_add(1);
        Ok(())
    }
}

/// A place among those that wait, given up when dropped.
struct Place<'a, P: QueuePriority> {
    limiter: &'a Limiter<P>,
    priority: P,
}

impl<'a, P: QueuePriority> Place<'a, P> {
    fn new(limiter: &'a Limiter<P>, priority: P) -> Self {
        let place = Self { limiter, priority };
        place.count(|waiting| waiting + 1);
        place
    }

    fn count(&self, change: impl Fn(usize) -> usize) {
        let mut state = self.limiter.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = state.waiting.entry(self.priority).or_default();
        *waiting = change(*waiting);
    }
}

impl<P: QueuePriority> Drop for Place<'_, P> {
    fn drop(&mut self) {
        self.count(|waiting| waiting.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use trainjob_core::priority::Priority;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_holds() {
        let limiter = Limiter::new(10.0, 5);
        let start = Instant::now();
        for _ in 0..15 {
            limiter.acquire(Priority::Live).await;
        }
        let seconds = start.elapsed().as_secs_f64();
        assert!((0.95..1.2).contains(&seconds), "{seconds}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_better_lane_gets_the_next_token() {
        let limiter = std::sync::Arc::new(Limiter::new(1.0, 1));
        limiter.acquire(Priority::Live).await;
        let order = std::sync::Arc::new(Mutex::new(Vec::new()));
        let mut waiting = tokio::task::JoinSet::new();
        for priority in [Priority::Cleanup, Priority::Live, Priority::Stop] {
            let (limiter, order) = (limiter.clone(), order.clone());
            waiting.spawn(async move {
                limiter.acquire(priority).await;
                order.lock().unwrap().push(priority);
            });
        }
        while waiting.join_next().await.is_some() {}
        assert_eq!(*order.lock().unwrap(), vec![Priority::Stop, Priority::Live, Priority::Cleanup]);
    }
}
