//! Lanes: which work goes first wherever work waits.
//!
//! A backlog of a hundred thousand expired jobs must delay neither a due deadline nor a new job. Within
//! the lanes of stopping and of cleaning up, what was due first goes first.

use trainjob_api::time::Timestamp;

use crate::{
    facts::{JobFacts, JobSetFacts, Outcome},
    lifecycle::deadline,
    observed::{Reading, Readings, Settings},
};

/// Of so many turns, one belongs to the last lane even when the others have work.
const TURNS_PER_CLEANUP: u8 = 8;

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

    /// The order of the lanes at a turn, of which there are any number. One turn in eight begins with
    /// the last lane, which could starve otherwise.
    #[must_use]
    pub const fn order(turn: u8) -> [Self; 3] {
        if turn.is_multiple_of(TURNS_PER_CLEANUP) {
            [Self::Cleanup, Self::Stop, Self::Live]
        } else {
            Self::ALL
        }
    }
}

/// Where a job's next pass waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The lane.
    pub lane: Lane,
    /// Since when the pass has been due; within a lane the earlier goes first.
    pub due: Timestamp,
}

impl Place {
    /// In the lane of live work, which is worked on in the order in which it came.
    pub const LIVE: Self = Self { lane: Lane::Live, due: Timestamp(0) };
}

/// The place that a job's next pass belongs in.
#[must_use]
pub fn place(
    job: &JobFacts,
    job_set: Option<&JobSetFacts>,
    readings: &Readings,
    settings: &Settings,
    now: Timestamp,
) -> Place {
    match job.finished {
        Some(finished) => {
            let deadline = finished.outcome == Outcome::DeadlineExceeded;
            let unreleased = deadline && readings.pods != Reading::Absent;
            if unreleased || job_set.is_some_and(|job_set| job_set.may_run_after_the_end(job)) {
                return Place { lane: Lane::Stop, due: finished.at };
            }
            let due = job.ttl.map_or(Timestamp(i64::MAX), |ttl| finished.at.plus(i64::from(ttl)));
            Place { lane: Lane::Cleanup, due }
        }
        None if job.managed_elsewhere => Place::LIVE,
        None => {
            let subject = deadline::Subject::of(job, settings.deadline_clock);
            match deadline::decide(&subject, now) {
                deadline::Decision::Exceeded { due } => Place { lane: Lane::Stop, due },
                deadline::Decision::Never | deadline::Decision::Wait { .. } => Place::LIVE,
            }
        }
    }
}
