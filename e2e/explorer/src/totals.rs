//! What many schedules come to.

use std::{fmt, time::Duration};

use crate::{outcome::Outcome, violation::Violation};

/// What a number of schedules come to.
#[derive(Debug)]
pub struct Totals<O: Outcome> {
    /// Schedules that have ended.
    pub schedules: u64,
    /// All their numbers, added up.
    pub sum: O,
    /// Schedules with two processes that acted at once.
    pub two_leaders: u64,
    /// Seeds of the schedules that broke a rule, and the first that each broke.
    pub violations: Vec<(u64, Violation<O::Rule>)>,
    /// How long that took.
    pub duration: Duration,
}

impl<O: Outcome> Default for Totals<O> {
    fn default() -> Self {
        Self {
            schedules: 0,
            sum: O::default(),
            two_leaders: 0,
            violations: Vec::new(),
            duration: Duration::ZERO,
        }
    }
}

impl<O: Outcome> Totals<O> {
    /// Adds what became of the schedule of a seed.
    pub fn add(&mut self, seed: u64, mut outcome: O) {
        self.schedules += 1;
        self.sum.add(&outcome);
        self.two_leaders += u64::from(outcome.had_two_leaders());
        self.violations.extend(outcome.take_violation().map(|violation| (seed, violation)));
    }

    /// Adds what others come to.
    pub fn join(&mut self, mut other: Self) {
        self.schedules += other.schedules;
        self.sum.add(&other.sum);
        self.two_leaders += other.two_leaders;
        self.violations.append(&mut other.violations);
    }

    /// So much time has passed.
    pub fn end(&mut self, duration: Duration) {
        self.duration = duration;
        self.violations.sort_by_key(|(seed, _)| *seed);
    }
}

impl<O: Outcome> fmt::Display for Totals<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedules, sum, two_leaders, violations, duration } = self;
        let (seconds, violations) = (duration.as_secs_f64(), violations.len());
        write!(
            f,
            "{schedules} schedules in {seconds:.0} s: {sum}, {two_leaders} with two leaders; violations: {violations}",
        )
    }
}
