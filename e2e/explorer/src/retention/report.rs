//! What became of a schedule.

use super::judge::Violation;

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
    pub violation: Option<Violation>,
    /// What happened, if it was to be written down.
    pub trace: Vec<String>,
}
