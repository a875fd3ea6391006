//! Instants of a job's life that only metrics ask for.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use trainjob_core::facts::{JobFacts, ObjectKey};
use trainjob_engine::clock::monotonic;

/// As exactly as it is known how long a job ran.
const TICK: Duration = Duration::from_millis(100);

/// The instants of all jobs that have any. There may be a hundred thousand that run, so that they are kept by digests of
/// their names; that two have the same one is as good as impossible.
#[derive(Debug, Default)]
pub(super) struct Timings {
    known: Mutex<Known>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Known {
    /// Since when jobs have been seen to run, in ticks.
    runs_since: HashMap<u64, u32>,
    /// When the last Pods of jobs that their deadlines failed were seen gone.
    released: HashMap<u64, SystemTime>,
}

impl Timings {
    /// Takes in whether a job ran, runs, and ends; how long it ran, if that was seen.
    pub(super) fn runs(
        &self,
        key: &ObjectKey,
        did_run: bool,
        runs: bool,
        ends: bool,
    ) -> Option<Duration> {
        let (job, now) = (self.digest(key), ticks(monotonic()));
        let mut known = self.lock();
        let begins = (!did_run && runs).then_some(now);
        let since = known.runs_since.remove(&job).filter(|_| did_run).or(begins);
        if let Some(since) = since.filter(|_| runs && !ends) {
            known.runs_since.insert(job, since);
        }
        since.map(|since| TICK * now.saturating_sub(since))
    }

    /// Takes in that the last Pod of a job is gone at `now`. True when that is news.
    pub(super) fn released(&self, key: &ObjectKey, now: SystemTime) -> bool {
        self.lock().released.insert(self.digest(key), now).is_none()
    }

    /// When the last Pod of a job was seen gone.
    pub(super) fn released_at(&self, key: &ObjectKey) -> Option<SystemTime> {
        self.lock().released.get(&self.digest(key)).copied()
    }

    /// There is nothing to do for a job for now: once it has finished for good, only its release still matters.
    pub(super) fn settled(&self, job: &JobFacts, for_good: bool) {
        if job.finished.is_some() && for_good {
            self.lock().runs_since.remove(&self.digest(&job.key));
        }
    }

    /// The job is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let (job, mut known) = (self.digest(key), self.lock());
        known.runs_since.remove(&job);
        known.released.remove(&job);
    }

    fn digest(&self, key: &ObjectKey) -> u64 {
        self.hasher.hash_one(key)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time in ticks. No process lives for longer than thirteen years.
fn ticks(time: Duration) -> u32 {
    u32::try_from(time.as_millis() / TICK.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use trainjob_api::time::Timestamp;

    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::new("ns", "job")
    }

    #[test]
    fn run_is_timed_from_its_beginning_to_its_end_and_not_when_only_its_end_was_seen() {
        let timings = Timings::default();
        assert_eq!(timings.runs(&key(), true, false, true), None, "only the end was seen");
        assert!(timings.lock().runs_since.is_empty(), "what was not seen takes room");
        assert!(timings.runs(&key(), false, true, false).is_some());
        assert!(timings.runs(&key(), true, true, false).is_some());
        assert!(timings.runs(&key(), true, false, true).is_some());
        assert_eq!(timings.runs(&key(), true, false, true), None, "a run ends once");
    }

    #[test]
    fn release_is_news_once() {
        let timings = Timings::default();
        let news = [1, 2].map(|at| timings.released(&key(), SystemTime::from(Timestamp(at))));
        assert_eq!(news, [true, false]);
        assert!(timings.released_at(&key()).is_some());
        timings.forget(&key());
        assert_eq!(timings.released_at(&key()), None);
    }
}
