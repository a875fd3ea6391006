//! How schedules are run, and what became of one.

use crate::{defect::Defect, violation::Violation};

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
    pub violation: Option<Violation>,
    /// What happened, if it was to be written down.
    pub trace: Vec<String>,
}
