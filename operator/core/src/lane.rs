//! Lanes: which work goes first wherever work waits.
//!
//! A backlog of a hundred thousand expired jobs must delay neither a due deadline nor a new job.

use trainjob_api::time::Timestamp;

use crate::{
    facts::{JobFacts, Outcome},
    lifecycle::deadline,
    observed::{Reading, Readings, Settings},
};

/// A lane; the lesser goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Deadlines that are due, and the release of what they stopped.
    Stop,
    /// New, changed and resumed jobs, and their status.
    Live,
    /// The removal of finished jobs.
    Cleanup,
}

impl Lane {
    /// All lanes, the first first.
    pub const ALL: [Self; 3] = [Self::Stop, Self::Live, Self::Cleanup];
}

/// The lane that a job's next pass belongs in.
#[must_use]
pub fn lane(job: &JobFacts, readings: &Readings, settings: &Settings, now: Timestamp) -> Lane {
    match job.finished {
        Some(finished) if finished.outcome == Outcome::DeadlineExceeded => {
            if readings.pods == Reading::Absent { Lane::Cleanup } else { Lane::Stop }
        }
        Some(_) => Lane::Cleanup,
        None => {
            let subject = deadline::Subject::of(job, settings.deadline_clock);
            match deadline::decide(&subject, now) {
                deadline::Decision::Exceeded { .. } => Lane::Stop,
                deadline::Decision::Never | deadline::Decision::Wait { .. } => Lane::Live,
            }
        }
    }
}
