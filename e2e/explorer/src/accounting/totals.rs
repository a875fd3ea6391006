//! What many schedules come to.

use std::{fmt, time::Duration};

use super::{options::Options, report::Report, schedule::run, violation::Violation};
use crate::parallel::{self, Sum};

/// What a number of schedules come to.
#[derive(Debug, Default)]
pub struct Totals {
    /// Schedules that have ended.
    pub schedules: u64,
    /// All their numbers, added up.
    pub sum: Report,
    /// Schedules with two processes that acted at once.
    pub two_leaders: u64,
    /// Seeds of the schedules that broke a rule, and the first that each broke.
    pub violations: Vec<(u64, Violation)>,
    /// How long that took.
    pub duration: Duration,
}

fn add(sum: &mut Report, more: &Report) {
    sum.steps += more.steps;
    sum.requests += more.requests;
    sum.stores += more.stores;
    sum.refused += more.refused;
    sum.lost += more.lost;
    sum.late += more.late;
    sum.crashes += more.crashes;
    sum.counted += more.counted;
    sum.uncounted += more.uncounted;
    sum.let_go += more.let_go;
    sum.forced += more.forced;
    sum.deleted_records += more.deleted_records;
    sum.suspensions += more.suspensions;
}

impl Sum for Totals {
    type Report = Report;

    fn add(&mut self, seed: u64, report: Report) {
        self.schedules += 1;
        add(&mut self.sum, &report);
        self.two_leaders += u64::from(report.two_leaders);
        self.violations.extend(report.violation.map(|violation| (seed, violation)));
    }

    fn join(&mut self, mut other: Self) {
        self.schedules += other.schedules;
        add(&mut self.sum, &other.sum);
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
        let Self { schedules, two_leaders, sum, .. } = self;
        let Report { steps, requests, stores, refused, lost, late, crashes, .. } = sum;
        let Report { counted, uncounted, let_go, forced, deleted_records, suspensions, .. } = sum;
        write!(
            f,
            "{schedules} schedules in {:.0} s: {steps} steps, {requests} requests, {stores} stores, {refused} refused, {lost} \
             lost, {late} late, {crashes} crashes; Pods: {counted} counted, {uncounted} gone before, {let_go} let go, {forced} \
             deleted by force; {deleted_records} records deleted, {suspensions} suspensions, {two_leaders} with two leaders; \
             violations: {}",
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
