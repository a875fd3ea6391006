//! When is looked at that which is looked at every second.

use std::time::Duration;

use tokio::time::Instant;
use trainjob_process::server_time::boot_time;

const SECOND: Duration = Duration::from_secs(1);

/// The next of the instants, a second apart, at which everything is looked at that is looked at every second.
///
/// They are the same for all who ask. So a process at rest wakes up once for all of them, and waking up is most of what it
/// does then.
#[must_use]
pub fn next_second() -> Instant {
    Instant::now() + rest_of_second(boot_time())
}

fn rest_of_second(now: Duration) -> Duration {
    SECOND.saturating_sub(Duration::from_nanos(now.subsec_nanos().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_within_a_second_waits_until_the_same_instant() {
        for millis in [7_000, 7_001, 7_500, 7_999] {
            let now = Duration::from_millis(millis);
            assert_eq!(now + rest_of_second(now), Duration::from_secs(8), "at {millis}");
        }
    }
}
