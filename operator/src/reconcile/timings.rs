//! Instants of a job's life that only metrics ask for.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use trainjob_core::facts::{JobFacts, ObjectKey};

/// The instants of all jobs that have any.
#[derive(Debug, Default)]
pub(super) struct Timings(Mutex<HashMap<ObjectKey, Timing>>);

#[derive(Debug, Default, Clone, Copy)]
struct Timing {
    /// Since when the job has been seen to run.
    runs_since: Option<Instant>,
    /// When the last Pod of a job that its deadline failed was seen gone.
    released: Option<SystemTime>,
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
        let mut timings = self.lock();
        let timing = timings.entry(key.clone()).or_default();
        let now = Instant::now();
        let begins = (!did_run && runs).then_some(now);
        let since = timing.runs_since.filter(|_| did_run).or(begins);
        timing.runs_since = since.filter(|_| runs && !ends);
        since.map(|since| now.duration_since(since))
    }

    /// Takes in that the last Pod of a job is gone at `now`. True when that is news.
    pub(super) fn released(&self, key: &ObjectKey, now: SystemTime) -> bool {
        let mut timings = self.lock();
        let timing = timings.entry(key.clone()).or_default();
        timing.released.replace(now).is_none()
    }

    /// When the last Pod of a job was seen gone.
    pub(super) fn released_at(&self, key: &ObjectKey) -> Option<SystemTime> {
        self.lock().get(key)?.released
    }

    /// There is nothing to do for a job for now: once it has finished for good, only its release still matters.
    pub(super) fn settled(&self, job: &JobFacts, for_good: bool) {
        if job.finished.is_none() || !for_good {
            return;
        }
        let mut timings = self.lock();
        if timings.get(&job.key).is_some_and(|timing| timing.released.is_none()) {
            timings.remove(&job.key);
        }
    }

    /// The job is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Timing>> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
