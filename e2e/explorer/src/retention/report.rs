//! What became of a schedule.

use std::fmt;

use super::judge::Rule;
use crate::{outcome::Outcome, violation::Violation};

/// What became of a schedule.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Things that happened.
    pub steps: usize,
    /// Deletions that were sent.
    pub requests: usize,
    /// Deletions that were accepted.
    pub deletions: usize,
    /// Records with a trip that were stored.
    pub trips: usize,
    /// Replicas that ended.
    pub crashes: usize,
    /// Requests that met another version than they were decided on.
    pub conflicts: usize,
    /// Whether two replicas acted at once.
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
        self.deletions += other.deletions;
        self.trips += other.trips;
        self.crashes += other.crashes;
        self.conflicts += other.conflicts;
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
        let Self { steps, requests, deletions, trips, crashes, conflicts, .. } = self;
        write!(
            f,
            "{steps} steps, {requests} deletions sent, {deletions} accepted, {trips} trips stored, {crashes} crashes, \
             {conflicts} conflicts"
        )
    }
}
