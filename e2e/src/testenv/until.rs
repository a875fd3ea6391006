//! Waiting for a condition, never for a time.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::{Instant, sleep};

/// The first pause between two looks; it grows to [`LONGEST_PAUSE`].
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// Between two looks of [`consistently`].
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks again and again until `check` finds what it looks for, and returns that.
///
/// `what` completes the sentence "waiting until …".
pub async fn until<T, F>(
    what: impl Display,
    timeout: Duration,
    mut check: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + timeout;
    let mut pause = SHORTEST_PAUSE;
    loop {
        // A look that hangs must not outlive the deadline.
        match tokio::time::timeout_at(deadline, check()).await {
            Ok(Some(found)) => return Ok(found),
            Ok(None) if Instant::now() + pause < deadline => sleep(pause).await,
            Ok(None) | Err(_) => bail!("gave up waiting until {what} after {timeout:?}"),
        }
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

/// Like [`until`], for a check that can say why it is not satisfied yet: the last reason is part
/// of the error.
pub async fn until_ok<T, F>(
    what: impl Display,
    timeout: Duration,
    mut check: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let last = std::sync::Mutex::new(None);
    let outcome = until(what, timeout, || {
        let attempt = check();
        async {
            match attempt.await {
                Ok(found) => Some(found),
                Err(error) => {
                    *last.lock().ok()? = Some(error);
                    None
                }
            }
        }
    })
    .await;
    let reason = last.into_inner().ok().flatten();
    match reason {
        Some(reason) => {
            outcome.with_context(|| format!("the last thing that stood in the way: {reason:#}"))
        }
        None => outcome,
    }
}

/// Sees that `check` holds all through `window`; fails at the first poll at which it does not.
///
/// The name is that of Gomega's `Consistently`.
///
/// That something does not happen has no event to wait for. This is the one way in which tests let
/// time pass, and it is for nothing else.
pub async fn consistently(
    what: &str,
    window: Duration,
    check: impl AsyncFn() -> Result<()>,
) -> Result<()> {
    let (begin, end) = (Instant::now(), Instant::now() + window);
    loop {
        let look = check().await;
        look.with_context(|| format!("{what}: not so after {:?}", begin.elapsed()))?;
        if Instant::now() >= end {
            return Ok(());
        }
        sleep(LOOK_EVERY).await;
    }
}
