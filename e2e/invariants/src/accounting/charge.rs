//! What a Pod is charged for.

use trainjob_api::time::Timestamp;

/// What a Pod is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// From when on.
    pub start: Timestamp,
    /// Until when, but not beyond the instant at which the Pod is counted (AT3): the clock of a node may be wrong.
    pub end: Timestamp,
    /// Whether that is no more than the latest possible end, so that it matters when the Pod is counted.
    pub at_most: bool,
    /// For how many GPUs.
    pub gpus: u64,
}

impl Charge {
    /// The GPU seconds, if the Pod is counted then; `None`: that matters and is not known.
    #[must_use]
    pub fn gpu_seconds(&self, counted_at: Option<Timestamp>) -> Option<u64> {
        let end = match counted_at {
            Some(counted_at) => self.end.min(counted_at),
            None if self.at_most => return None,
            None => self.end,
        };
        let seconds = u64::try_from(end.since(self.start)).unwrap_or_default();
        Some(seconds.saturating_mul(self.gpus))
    }
}
