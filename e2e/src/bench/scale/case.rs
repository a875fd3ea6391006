//! The parts of `scale` that are measured alone.

use clap::ValueEnum;

/// A part of the bench with a control plane of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// Everything but `hostile`.
    Resident,
    /// TrainJobs of a megabyte.
    Hostile,
}
