//! What became of a schedule.

use std::fmt;

use super::rule::Rule;
use crate::{outcome::Outcome, violation::Violation};

/// What became of a schedule.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Things that happened.
    pub steps: usize,
    /// Requests that were sent.
    pub requests: usize,
    /// Statuses that were stored.
    pub stores: usize,
    /// Requests that were refused.
    pub refused: usize,
    /// Requests that were lost, or whose answer was.
    pub lost: usize,
    /// Requests that were carried out when nobody waited for them any more.
    pub late: usize,
    /// Processes that crashed.
    pub crashes: usize,
    /// Pods that were counted.
    pub counted: usize,
    /// Pods that went before they were counted.
    pub uncounted: usize,
    /// Pods that were let go.
    pub let_go: usize,
    /// Pods that were deleted by force.
    pub forced: usize,
    /// Records that somebody deleted.
    pub deleted_records: usize,
    /// Suspensions of the TrainJob.
    pub suspensions: usize,
    /// Whether two processes acted at once.
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
        self.stores += other.stores;
        self.refused += other.refused;
        self.lost += other.lost;
        self.late += other.late;
        self.crashes += other.crashes;
        self.counted += other.counted;
        self.uncounted += other.uncounted;
        self.let_go += other.let_go;
        self.forced += other.forced;
        self.deleted_records += other.deleted_records;
        self.suspensions += other.suspensions;
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
        let Self { steps, requests, stores, refused, lost, late, crashes, .. } = self;
        let Self { counted, uncounted, let_go, forced, deleted_records, suspensions, .. } = self;
        write!(
            f,
            "{steps} steps, {requests} requests, {stores} stores, {refused} refused, {lost} lost, {late} late, {crashes} \
             crashes; Pods: {counted} counted, {uncounted} gone before, {let_go} let go, {forced} deleted by force; \
             {deleted_records} records deleted, {suspensions} suspensions"
        )
    }
}
