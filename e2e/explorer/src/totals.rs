//! Many schedules, on all cores, and what they come to.

use std::{
    fmt,
    num::NonZero,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    schedule::{Options, Report, run},
    violation::Violation,
};

/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(5);
/// Seeds that a thread takes at once.
const SHARE: u64 = 64;

/// What a number of schedules come to.
#[derive(Debug, Default)]
pub struct Totals {
    /// Schedules that have ended.
    pub schedules: u64,
    /// Things that happened in them.
    pub steps: usize,
    /// Requests that operators sent.
    pub requests: usize,
    /// Crashes of operators.
    pub crashes: usize,
    /// Requests that the API server answered with 409.
    pub conflicts: usize,
    /// Checks for Pods that passes went on without.
    pub late_checks: usize,
    /// Schedules with two operators at once.
    pub two_leaders: u64,
    /// Seeds of the schedules that broke a rule, and the first that each broke.
    pub violations: Vec<(u64, Violation)>,
    /// How long that took.
    pub duration: Duration,
}

impl Totals {
    fn add(&mut self, seed: u64, report: Report) {
        self.schedules += 1;
        self.steps += report.steps;
        self.requests += report.requests;
        self.crashes += report.crashes;
        self.conflicts += report.conflicts;
        self.late_checks += report.late_checks;
        self.two_leaders += u64::from(report.two_leaders);
        self.violations.extend(report.violation.map(|violation| (seed, violation)));
    }

    fn join(&mut self, mut other: Self) {
        self.schedules += other.schedules;
        self.steps += other.steps;
        self.requests += other.requests;
        self.crashes += other.crashes;
        self.conflicts += other.conflicts;
        self.late_checks += other.late_checks;
        self.two_leaders += other.two_leaders;
        self.violations.append(&mut other.violations);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedules, steps, requests, crashes, conflicts, .. } = self;
        let Self { late_checks, two_leaders, .. } = self;
        write!(
            f,
            "{schedules} schedules in {:.0} s: {steps} steps, {requests} requests, {crashes} crashes, \
             {conflicts} conflicts, {late_checks} late answers, {two_leaders} with two leaders; violations: {}",
            self.duration.as_secs_f64(),
            self.violations.len(),
        )
    }
}

/// Runs the schedules of so many seeds from `from` on; tells `progress` now and then how far it is.
#[must_use]
pub fn explore(from: u64, schedules: u64, progress: impl Fn(&Totals) + Sync) -> Totals {
    let begin = Instant::now();
    let totals = Mutex::new(Totals::default());
    let (next, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let observer = scope.spawn(|| {
            loop {
                thread::park_timeout(PROGRESS);
                if done.load(Ordering::Acquire) {
                    return;
                }
                let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
                totals.duration = begin.elapsed();
                progress(&totals);
            }
        });
        let work = || work(from, schedules, &next, &totals);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            // A thread that panicked is missed in the count of schedules.
            drop(worker.join());
        }
        done.store(true, Ordering::Release);
        observer.thread().unpark();
    });
    let mut totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    totals.duration = begin.elapsed();
    totals.violations.sort_by_key(|(seed, _)| *seed);
    totals
}

fn work(from: u64, schedules: u64, next: &AtomicU64, totals: &Mutex<Totals>) {
    loop {
        let first = next.fetch_add(SHARE, Ordering::Relaxed);
        if first >= schedules {
            return;
        }
        let mut share = Totals::default();
        for number in first..schedules.min(first + SHARE) {
            let seed = from.wrapping_add(number);
            share.add(seed, run(seed, Options::default()));
        }
        totals.lock().unwrap_or_else(PoisonError::into_inner).join(share);
    }
}
