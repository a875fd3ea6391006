//! What both programs count alike: their requests to the API server, themselves as processes, and what
//! they were built from (`docs/metrics.md`).

mod build;
mod counters;
mod own;
pub mod requests;
mod sampled;
mod values;

pub use build::build_info;
pub use counters::{counter, counters, histogram, histograms};
pub use own::own;
pub use requests::Requests;
pub use sampled::Sampled;
pub use values::Values;

/// The label for the namespace of a job. `namespace` is what Prometheus calls that of the target.
pub const JOB_NAMESPACE: &str = "job_namespace";
