//! What many schedules come to.

use std::{fmt, time::Duration};

use super::{judge::Violation, options::Options, report::Report, schedule::run};
use crate::parallel::{self, Sum};

/// What a number of schedules come to.
#[derive(Debug, Default)]
pub struct Totals {
    /// Schedules that have ended.
    pub schedules: u64,
    /// Things that happened in them.
    pub steps: usize,
    /// Deletions that replicas sent.
    pub requests: usize,
    /// Deletions that the API server accepted.
    pub deletions: usize,
    /// Records with a trip that were stored.
    pub trips: usize,
    /// Replicas that ended.
    pub crashes: usize,
    /// Requests that met another version than they were decided on.
    pub conflicts: usize,
    /// Schedules with two replicas that acted at once.
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
        self.deletions += report.deletions;
        self.trips += report.trips;
        self.crashes += report.crashes;
        self.conflicts += report.conflicts;
        self.two_leaders += u64::from(report.two_leaders);
        self.violations.extend(report.violation.map(|violation| (seed, violation)));
    }

    fn join(&mut self, mut other: Self) {
        self.schedules += other.schedules;
        self.steps += other.steps;
        self.requests += other.requests;
        self.deletions += other.deletions;
        self.trips += other.trips;
        self.crashes += other.crashes;
        self.conflicts += other.conflicts;
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
        let Self { schedules, steps, requests, deletions, trips, .. } = self;
        let Self { crashes, conflicts, two_leaders, .. } = self;
        write!(
            f,
            "{schedules} schedules in {:.0} s: {steps} steps, {requests} deletions sent, {deletions} accepted, {trips} \
             trips stored, {crashes} crashes, {conflicts} conflicts, {two_leaders} with two leaders; violations: {}",
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
