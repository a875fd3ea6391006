//! What happens in a take-over.

use std::collections::HashMap;

use super::super::calls::Micros;

/// How a leader ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It is asked to stop, and releases its Lease.
    Terminated,
    /// It is killed.
    Killed,
    /// It stands still, and goes on when another one leads.
    Paused,
}

impl Ending {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Terminated, Self::Killed, Self::Paused];

    /// What it is called in a table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Terminated => "SIGTERM",
            Self::Killed => "SIGKILL",
            Self::Paused => "paused",
        }
    }
}

/// What happens in a take-over, and when.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) ending: Ending,
    /// When the leader ends.
    pub(super) ends: Micros,
    /// When each of these TTLs comes, by the name of the job.
    pub(super) ttls: HashMap<String, Micros>,
    /// The same of deadlines.
    pub(super) deadlines: HashMap<String, Micros>,
    /// The name of the new job, and when it was there.
    pub(super) new: (String, Micros),
}
