//! How long a request that failed waits for its next try (AG8).

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

/// When the next try is due. It is tried for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backoff {
    failures: u32,
    again_at: Duration,
}

impl Backoff {
    /// A try has failed, with no success in between: the wait doubles. `at_least` is what the answer asked for.
    pub fn failed(&mut self, clock: Duration, at_least: Duration) {
        let wait = FIRST.saturating_mul(1 << self.failures.min(7)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.again_at = clock.saturating_add(wait.max(at_least));
    }

    /// A try has succeeded.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Whether the last try has failed.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// How long it is until the next try; zero: none failed, or it is due.
    #[must_use]
    pub const fn wait(&self, clock: Duration) -> Duration {
        self.again_at.saturating_sub(clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ag8_waits_double_up_to_half_a_minute_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::default();
        let mut clock = Duration::from_secs(9);
        assert_eq!(backoff.wait(clock), Duration::ZERO);
        for expected in [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            backoff.failed(clock, Duration::ZERO);
            assert_eq!(backoff.wait(clock).as_millis(), expected);
            clock += backoff.wait(clock);
        }
        backoff.succeeded();
        backoff.failed(clock, Duration::from_secs(7));
        assert_eq!(backoff.wait(clock).as_secs(), 7, "what the answer asked for");
    }
}
