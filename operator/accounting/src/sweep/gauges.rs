//! What the sweeper shows of the Pods that wait.

use std::sync::Arc;

use prometheus::Result;
use trainjob_engine::clock::monotonic;
use trainjob_process::metrics::Sampled;

use super::Sweeper;
use crate::metrics::PREFIX;

/// Shows them among its metrics.
pub(super) fn show(sweeper: &Arc<Sweeper>) -> Result<()> {
    let mut sampled = Sampled::default();
    let mut gauge = |name: &str, help: &str| sampled.gauge(&format!("{PREFIX}_{name}"), help);
    let held = gauge("held_pods", "Pods that have ended, are deleted, and have the finalizer.")?;
    let longest = gauge(
        "held_longest_seconds",
        "For how long the Pod has been held that is held longest; 0 if none is.",
    )?;
    let shown = Arc::clone(sweeper);
    sampled.register(sweeper.metrics.registry(), move || {
        let (pods, seconds) = shown.candidates().held(monotonic());
        held.set(i64::try_from(pods).unwrap_or(i64::MAX));
        longest.set(i64::try_from(seconds.as_secs()).unwrap_or(i64::MAX));
    })
}
