//! What failed last, and when the next try is due.

use std::time::Duration;

use super::call::Call;
use crate::backoff::Backoff;

/// How often the TrainJob is asked for before the watch is believed.
const JOB_READS: u32 = 2;

/// What failed last, and when the next try is due.
#[derive(Debug, Default)]
pub(super) struct Tries {
    backoff: Backoff,
    failing: Option<Asked>,
    /// How often the TrainJob could not be read since the last store.
    job_reads: u32,
}

/// A kind of request about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Create,
    Get,
    List,
    Job,
    Store,
    Release,
}

const fn asked(call: &Call) -> Asked {
    match call {
        Call::Create { .. } => Asked::Create,
        Call::Get { .. } => Asked::Get,
        Call::List { .. } => Asked::List,
        Call::ReadJob => Asked::Job,
        Call::Store(_) => Asked::Store,
        Call::Release { .. } => Asked::Release,
    }
}

impl Tries {
    /// How long it is until the next try.
    pub(super) const fn wait(&self, clock: Duration) -> Duration {
        self.backoff.wait(clock)
    }

    /// A call has failed.
    pub(super) fn failed(&mut self, call: &Call, clock: Duration, retry_after: Duration) {
        self.failing = Some(asked(call));
        self.backoff.failed(clock, retry_after);
    }

    /// A call was done. That a record can be read is no news if it cannot be written.
    pub(super) fn succeeded(&mut self, call: &Call) {
        let stored = matches!(call, Call::Store(_));
        if stored || self.failing == Some(asked(call)) {
            self.failing = None;
            self.backoff.succeeded();
        }
        if stored {
            self.job_reads = 0;
        }
    }

    /// The TrainJob could not be read. Whether that was tried often enough: then the watch is believed, so that its Pods are
    /// counted.
    pub(super) const fn job_unread(&mut self) -> bool {
        self.job_reads = self.job_reads.saturating_add(1);
        self.job_reads >= JOB_READS
    }
}
