//! What a plan is made from, beside the record and its Pods.

use crate::{clock::Now, job::Job, settings::Settings};

/// Whether the TrainJob is as the watch shows it, or was read for this plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobRead {
    /// The watch may be behind.
    #[default]
    Watched,
    /// It was read after the Pods of the batch had ended.
    Read,
}

/// What a plan is made from, beside the Pods.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The TrainJob.
    pub job: &'a Job,
    /// How that is known.
    pub job_read: JobRead,
    /// The settings.
    pub settings: &'a Settings,
    /// The time.
    pub now: Now,
}
