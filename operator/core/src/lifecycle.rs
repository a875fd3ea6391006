//! The end of a job's life: one file a rule.
//!
//! * [`deadline`]: when an unfinished job is failed.
//! * [`release`]: when the resources of a job that its deadline failed are free.
//! * [`release_status`]: what a job's status says until then.
//! * [`ttl`]: when a finished job is deleted.
//! * [`hold`]: how long an annotation keeps it beyond that.
//! * [`status`]: what a job's status says meanwhile.

pub mod deadline;
pub mod hold;
pub mod release;
pub mod release_status;
pub mod status;
pub mod ttl;
