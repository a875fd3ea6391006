//! What a worker remembers of a job between passes.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use trainjob_core::lane::Lane;

/// The longest that a `Retry-After` holds up a job: what holds accelerators is let go of sooner. It holds
/// up no other job: what answers so may be one webhook, or one kind.
pub(super) const fn longest_throttle(lane: Lane) -> Duration {
    match lane {
        Lane::Stop => Duration::from_secs(5),
        Lane::Live | Lane::Cleanup => Duration::from_secs(30),
    }
}

/// What a worker remembers of a job between passes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Progress {
    /// Failures in a row.
    pub(super) failures: u32,
    /// Those of them for which the API server was reached: that it cannot be is said by the watches.
    pub(super) refusals: u32,
    /// Since when the API server refuses for want of the TrainJob kind.
    undiscovered_since: Option<Instant>,
    /// When it was told to wait, and for how long.
    pub(super) told_to_wait: Option<(Instant, Duration)>,
    /// When counts were last written.
    pub(super) counts_written: Option<Instant>,
    /// Since when it has been seen to run.
    pub(super) runs_since: Option<Instant>,
    /// When the last Pod of a job that its deadline failed was seen gone.
    pub(super) released: Option<SystemTime>,
}

impl Progress {
    /// How long work of this lane has to wait yet, if it was told to. News of the job does not end that.
    pub(super) fn wait(&self, lane: Lane, now: Instant) -> Option<Duration> {
        let (told, wait) = self.told_to_wait?;
        let until = told + wait.min(longest_throttle(lane));
        until.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// Notes a refusal for want of the TrainJob kind; how long ago the first of them was.
    pub(super) fn undiscovered(&mut self, now: Instant) -> Duration {
        now.duration_since(*self.undiscovered_since.get_or_insert(now))
    }

    /// Nothing fails any more.
    pub(super) const fn recovered(&mut self) {
        (self.failures, self.refusals, self.undiscovered_since) = (0, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_told_to_wait_waits_but_stops_a_job_after_five_seconds() {
        let told = Instant::now();
        for (seconds, lane, after, wait) in [
            (3, Lane::Live, 1, Some(2)),
            (3, Lane::Stop, 1, Some(2)),
            (20, Lane::Stop, 1, Some(4)),
            (20, Lane::Stop, 5, None),
            (20, Lane::Cleanup, 5, Some(15)),
            (3_600, Lane::Live, 5, Some(25)),
            (3, Lane::Live, 3, None),
        ] {
            let told_to_wait = Some((told, Duration::from_secs(seconds)));
            let progress = Progress { told_to_wait, ..Progress::default() };
            let now = told + Duration::from_secs(after);
            let wait = wait.map(Duration::from_secs);
            assert_eq!(progress.wait(lane, now), wait, "{seconds} s, {lane:?}, after {after} s");
        }
        assert_eq!(Progress::default().wait(Lane::Live, told), None);
    }

    #[test]
    fn refusals_for_want_of_the_kind_count_from_the_first_since_the_last_success() {
        let (begin, mut progress) = (Instant::now(), Progress::default());
        let mut refused_after = |seconds| {
            let now = begin + Duration::from_secs(seconds);
            progress.undiscovered(now).as_secs()
        };
        assert_eq!([0, 2, 44].map(&mut refused_after), [0, 2, 44]);
        progress.recovered();
        let mut refused_after = |seconds| {
            let now = begin + Duration::from_secs(seconds);
            progress.undiscovered(now).as_secs()
        };
        assert_eq!([100, 103].map(&mut refused_after), [0, 3]);
    }
}
