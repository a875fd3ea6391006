//! How schedules are run, and what became of one.

use std::fmt;

use crate::{defect::Defect, outcome::Outcome, rule::Rule, violation::Violation};

/// How schedules are run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// A defect to find.
    pub defect: Option<Defect>,
    /// Whether to write down what happens.
    pub trace: bool,
}

/// What became of one schedule.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Things that happened.
    pub steps: usize,
    /// Requests that the operators sent.
    pub requests: usize,
    /// Crashes of operators.
    pub crashes: usize,
    /// Requests that met another version than they were decided on.
    pub conflicts: usize,
    /// Checks for Pods that passes went on without.
    pub late_checks: usize,
    /// Whether two operators acted at once.
    pub two_leaders: bool,
    /// The first rule that was broken.
    pub violation: Option<Violation<Rule>>,
    /// What happened, if it was to be written down.
    pub trace: Vec<String>,
}

impl Outcome for Report {
    type Rule = Rule;

    fn broken(violation: Violation<Rule>) -> Self {
        Self { violation: Some(violation), ..Self::default() }
    }

    fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.requests += other.requests;
        self.crashes += other.crashes;
        self.conflicts += other.conflicts;
        self.late_checks += other.late_checks;
    }

    fn had_two_leaders(&self) -> bool {
        self.two_leaders
    }

    fn take_violation(&mut self) -> Option<Violation<Rule>> {
        self.violation.take()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, requests, crashes, conflicts, late_checks, .. } = self;
        write!(
            f,
            "{steps} steps, {requests} requests, {crashes} crashes, {conflicts} conflicts, {late_checks} late answers"
        )
    }
}
