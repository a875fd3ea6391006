//! The one clock of a controller.
//!
//! Decisions are made on whole seconds (`docs/semantics.md` §5); waiting is done in finer steps.

use std::{
    sync::LazyLock,
    time::{Duration, Instant, SystemTime},
};

use trainjob_api::time::Timestamp;

/// The time, cut off to the second as every stored instant is.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

/// How long it is until the clock shows `at`; zero when it already does.
///
/// The wall clock may step meanwhile, so callers wait in short pieces and ask again.
#[must_use]
pub fn until(at: Timestamp) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let at = Duration::from_secs(u64::try_from(at.0).unwrap_or(0));
    at.saturating_sub(now)
}

/// The time since this was first asked, which no step of the wall clock changes.
#[must_use]
pub fn monotonic() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
