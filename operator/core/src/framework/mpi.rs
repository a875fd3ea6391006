//! MPI.

pub(super) mod build;
pub(super) mod validate;

/// Name of the replicated job that starts the processes of the others.
const LAUNCHER: &str = "launcher";
