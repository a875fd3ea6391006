//! Whether this process leads, as everything that writes asks it.

use std::future::pending;

use tokio::{sync::watch, time::Instant};

use crate::error::RequestError;

/// What this process is in the election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// Somebody else leads, or nobody.
    Waiting,
    /// This process leads.
    Leading {
        /// Until when, unless it renews in time.
        until: Instant,
    },
}

impl Leadership {
    fn holds(self) -> bool {
        matches!(self, Self::Leading { until } if Instant::now() < until)
    }
}

/// Whether this process may act. Whatever writes asks it before each write.
#[derive(Debug, Clone)]
pub struct LeaderGuard(Option<watch::Receiver<Leadership>>);

impl LeaderGuard {
    /// That of an election.
    #[must_use]
    pub const fn of(leadership: watch::Receiver<Leadership>) -> Self {
        Self(Some(leadership))
    }

    /// Where no leader is elected.
    #[must_use]
    pub const fn always() -> Self {
        Self(None)
    }

    /// Whether it may act now.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.0.as_ref().is_none_or(|leadership| leadership.borrow().holds())
    }

    /// Refuses when it may not act now.
    ///
    /// # Errors
    ///
    /// This process does not lead.
    pub fn check(&self) -> Result<(), RequestError> {
        if self.holds() { Ok(()) } else { Err(RequestError::NotLeading) }
    }

    /// Waits until it may act.
    pub async fn granted(&self) {
        let Some(mut leadership) = self.0.clone() else { return };
        if leadership.wait_for(|leadership| leadership.holds()).await.is_err() {
            // The election is over, and so is the process soon.
            pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::sleep_until;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn guard_holds_no_longer_than_the_last_renewal_says() {
        let (leadership, guard) = watch::channel(Leadership::Waiting);
        let guard = LeaderGuard::of(guard);
        assert!(matches!(guard.check(), Err(RequestError::NotLeading)));
        let begin = Instant::now();
        let until = begin + Duration::from_secs(10);
        tokio::spawn(async move {
            sleep_until(begin + Duration::from_secs(3)).await;
            leadership.send_replace(Leadership::Leading { until });
            pending::<()>().await;
        });
        guard.granted().await;
        assert_eq!(begin.elapsed().as_secs(), 3);
        assert!(guard.holds() && guard.check().is_ok());
        sleep_until(until).await;
        assert!(!guard.holds());
    }

    #[tokio::test(start_paused = true)]
    async fn guard_always_holds_without_an_election() {
        let guard = LeaderGuard::always();
        guard.granted().await;
        assert!(guard.holds());
    }
}
