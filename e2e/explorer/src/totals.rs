//! What many schedules come to.

use std::{fmt, time::Duration};

use crate::{
    parallel::{self, Sum},
    schedule::{Options, Report, run},
    violation::Violation,
};

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

impl Sum for Totals {
    type Report = Report;

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

    fn end(&mut self, duration: Duration) {
        self.duration = duration;
        self.violations.sort_by_key(|(seed, _)| *seed);
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
    parallel::explore((from, schedules), |seed| run(seed, Options::default()), progress)
}
