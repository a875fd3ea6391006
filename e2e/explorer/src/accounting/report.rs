//! What became of a schedule.

use super::violation::Violation;

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
    pub violation: Option<Violation>,
    /// What happened, if it was to be written down.
    pub trace: Vec<String>,
}
