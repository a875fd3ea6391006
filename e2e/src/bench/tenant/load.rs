//! What a bad neighbour has done, and who is measured beside it.

use super::super::rig::Rig;
use super::neighbour::{Neighbour, Served};

/// Who is measured, and for how long.
pub(super) struct Beside<'a> {
    pub(super) rig: &'a Rig,
    pub(super) neighbour: &'a Neighbour,
    /// TrainJobs of the bad neighbour.
    pub(super) jobs: usize,
    pub(super) seconds: usize,
}

/// What came of a round.
pub(super) struct Round {
    pub(super) served: Served,
    /// What the bad neighbour did, for people.
    pub(super) load: String,
    /// How much it did less than it had to, or the neighbour was not measured beside it.
    pub(super) lacking: usize,
}
