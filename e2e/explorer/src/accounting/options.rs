//! How schedules are run.

use super::defect::Defect;

/// How schedules are run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// A defect to find.
    pub defect: Option<Defect>,
    /// Whether to write down what happens.
    pub trace: bool,
}
