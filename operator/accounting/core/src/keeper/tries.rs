//! What failed last, and when the next try is due.

use std::time::Duration;

use super::call::Call;
use crate::{answer::Failure, backoff::Backoff};

/// How often the TrainJob is asked for before the watch is believed.
const JOB_READS: u32 = 2;

/// What failed last, and when the next try is due.
#[derive(Debug, Default)]
pub(super) struct Tries {
    backoff: Backoff,
    failing: Option<Asked>,
    /// Whether the record could not be created because there is one, and was not read since.
    exists: bool,
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

    /// A call has failed. That the record is there already is no failure that is waited for: what is read now is news.
    pub(super) fn failed(
        &mut self,
        call: &Call,
        failure: Failure,
        clock: Duration,
        retry_after: Duration,
    ) {
        if failure == (Failure::AlreadyExists { same: true }) && !self.exists {
            self.exists = true;
            return;
        }
        self.failing = Some(asked(call));
        self.backoff.failed(clock, retry_after);
    }

    /// The record was asked for and is not there. Where it could not be created because it is, somebody is wrong.
    pub(super) fn absent(&mut self, call: &Call, clock: Duration) {
        if self.exists {
            self.exists = false;
            self.failing = Some(Asked::Create);
            self.backoff.failed(clock, Duration::ZERO);
        } else {
            self.succeeded(call);
        }
    }

    /// A call was done. That a record can be read is no news if it cannot be written.
    pub(super) fn succeeded(&mut self, call: &Call) {
        self.exists = false;
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

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: Call = Call::Create { long_name: false };
    const GET: Call = Call::Get { long_name: false };
    const EXISTS: Failure = Failure::AlreadyExists { same: true };

    #[test]
    fn a_record_that_is_there_already_is_read_at_once() {
        let (mut tries, clock) = (Tries::default(), Duration::from_secs(9));
        tries.failed(&CREATE, EXISTS, clock, Duration::ZERO);
        assert_eq!(tries.wait(clock), Duration::ZERO);
        tries.succeeded(&GET);
        tries.failed(&CREATE, EXISTS, clock, Duration::ZERO);
        assert_eq!(tries.wait(clock), Duration::ZERO, "the next time, too");
    }

    #[test]
    fn ag8_a_record_that_is_there_and_is_not_is_asked_for_more_and_more_seldom() {
        let (mut tries, mut clock) = (Tries::default(), Duration::from_secs(9));
        for expected in [250, 500, 1_000] {
            tries.failed(&CREATE, EXISTS, clock, Duration::ZERO);
            tries.absent(&GET, clock);
            assert_eq!(tries.wait(clock).as_millis(), expected);
            clock += tries.wait(clock);
        }
    }
}
