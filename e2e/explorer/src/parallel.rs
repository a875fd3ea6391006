//! Many schedules, on all cores.

use std::{
    num::NonZero,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{outcome::Outcome, totals::Totals};

/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(5);
/// Seeds that a thread takes at once.
const SHARE: u64 = 64;

/// Runs so many seeds from the first on; tells `progress` now and then how far it is.
#[must_use]
pub fn explore<O: Outcome>(
    (from, schedules): (u64, u64),
    run: impl Fn(u64) -> O + Sync,
    progress: impl Fn(&Totals<O>) + Sync,
) -> Totals<O> {
    let begin = Instant::now();
    let sum = Mutex::new(Totals::default());
    let (next, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let observer = scope.spawn(|| {
            loop {
                thread::park_timeout(PROGRESS);
                if done.load(Ordering::Acquire) {
                    return;
                }
                let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                sum.end(begin.elapsed());
                progress(&sum);
            }
        });
        let work = || work((from, schedules), &run, &next, &sum);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            // A thread that panicked is missed in the count of schedules.
            drop(worker.join());
        }
        done.store(true, Ordering::Release);
        observer.thread().unpark();
    });
    let mut sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.end(begin.elapsed());
    sum
}

fn work<O: Outcome>(
    (from, schedules): (u64, u64),
    run: &(impl Fn(u64) -> O + Sync),
    next: &AtomicU64,
    sum: &Mutex<Totals<O>>,
) {
    loop {
        let first = next.fetch_add(SHARE, Ordering::Relaxed);
        if first >= schedules {
            return;
        }
        let mut share = Totals::default();
        for number in first..schedules.min(first + SHARE) {
            let seed = from.wrapping_add(number);
            share.add(seed, run(seed));
        }
        sum.lock().unwrap_or_else(PoisonError::into_inner).join(share);
    }
}
