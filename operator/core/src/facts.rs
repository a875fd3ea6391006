//! What decisions need to know of a TrainJob and of its children, and nothing else.
//!
//! A stored object is parsed into its facts once, when it arrives. The facts of a finished job are all
//! that is remembered of it, so that a hundred thousand of them cost little.
//! Values that the schema would refuse but that are stored all the same (an older CRD, a hand-made
//! object) become [`OutOfRange`] here and count as unset everywhere else.

mod job_set;
mod key;
mod owner;
mod pod_group;
mod standing;
mod train_job;
mod uid;
mod version;

pub use self::{
    job_set::{JobSetEnd, JobSetFacts},
    key::ObjectKey,
    owner::controlling_train_job,
    pod_group::PodGroupFacts,
    standing::{Standing, is_running},
    train_job::{Finished, JobFacts, OutOfRange, Outcome, SuspendedCondition, WaitingCondition},
    uid::uuid_of,
};
pub(crate) use self::{train_job::end, version::version_number};
pub use crate::scheduler::{PerScheduler, PodGroupSpec, Scheduler};
