//! The one clock of a controller: the API server's, as far as it is known.
//!
//! Instants in objects were set by the API server's clock, so what they mean is asked of that clock, never of this
//! machine's (`docs/semantics.md` §5). What is known of it is worked out by [`trainjob_core::server_time`] from the
//! answers of the API server. A controller that is busy needs no more than those; to one that is not, a [`keep`] task
//! brings some.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant, SystemTime},
};

use kube::Client;
use tokio::{task::spawn_blocking, time::sleep};
use trainjob_api::time::Timestamp;
use trainjob_core::{
    Now,
    server_time::{Planner, Precision, Reading},
};
use trainjob_process::server_time::{ServerTime, boot_time};

use crate::{answer, error::RequestError};

/// An answer that takes longer says little.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest sleep between two looks at how well the time should be known.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The async runtime's timers count whole milliseconds and are one or two late.
const LATE_BY: Duration = Duration::from_millis(5);

/// The API server's clock. All copies are one.
#[derive(Debug, Clone)]
pub struct Clock(Arc<ServerTime>);

impl Clock {
    /// The clock that this estimate is of.
    #[must_use]
    pub const fn new(server_time: Arc<ServerTime>) -> Self {
        Self(server_time)
    }

    /// The time of a decision that is made now.
    #[must_use]
    pub fn now(&self) -> Now {
        let likely = || Timestamp::from(SystemTime::now());
        self.0.reading().map_or_else(|| Now::Held { likely: likely() }, |reading| reading.now())
    }

    /// What the clock most likely shows, to be written down or measured with; before the first answer, what this
    /// machine's clock shows.
    #[must_use]
    pub fn likely(&self) -> SystemTime {
        self.0.reading().map_or_else(SystemTime::now, likely)
    }

    /// How long it is until an instant has surely come, if no answer comes before; zero if it has. `None` while nobody can
    /// tell: callers ask again a little later.
    #[must_use]
    pub fn until(&self, instant: Timestamp) -> Option<Duration> {
        self.0.reading()?.until(instant)
    }

    /// Waits until an instant has surely come, however what is known of the time changes meanwhile.
    pub async fn reach(&self, instant: Timestamp) {
        loop {
            match self.until(instant) {
                Some(Duration::ZERO) => return,
                Some(left) => sleep(left.min(LONGEST_SLEEP)).await,
                None => sleep(LONGEST_SLEEP).await,
            }
        }
    }
}

fn likely(reading: Reading) -> SystemTime {
    let micros = u64::try_from(reading.clock.middle()).unwrap_or(0);
    let since_1970 = Duration::from_micros(micros);
    SystemTime::UNIX_EPOCH.checked_add(since_1970).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Asks the API server for its time whenever that is worth it, if it should be known with this precision. Never ends.
pub async fn keep(client: Client, server_time: Arc<ServerTime>, precision: impl Fn() -> Precision) {
    let mut planner = Planner::default();
    loop {
        let next = server_time.next_request(&mut planner, precision());
        if next.saturating_sub(boot_time()) > LONGEST_SLEEP {
            sleep(LONGEST_SLEEP).await;
            continue;
        }
        sleep_until(next).await;
        let sent = boot_time();
        // The answer's date is noted by the client, also of one that is an error.
        let answered = ask(&client).await;
        let took = answered.then(|| boot_time().saturating_sub(sent));
        server_time.asked(&mut planner, took);
    }
}

/// Sleeps until this boot time, to a tenth of a millisecond: as well as the time can be known.
async fn sleep_until(at: Duration) {
    sleep(at.saturating_sub(boot_time()).saturating_sub(LATE_BY)).await;
    let rest = at.saturating_sub(boot_time());
    if !rest.is_zero() {
        // It cannot fail: a sleep does not panic, and nobody aborts it.
        let _ = spawn_blocking(move || std::thread::sleep(rest)).await;
    }
}

/// Asks for what every user may ask for, and what costs the API server nothing. Whether there was an answer in time.
async fn ask(client: &Client) -> bool {
    match answer::within(PATIENCE, client.apiserver_version()).await {
        Ok(_) => true,
        Err(error) => {
            tracing::debug!(%error, "the API server does not tell its time");
            matches!(error, RequestError::Refused(_))
        }
    }
}

/// The time since this was first asked, which no step of the wall clock changes.
#[must_use]
pub fn monotonic() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
