//! The real Kueue queues TrainJobs that have a deadline and a TTL.
//!
//! The tests share two boxes, one for each clock of deadlines, and are tenants of them side by side. That of
//! retention changes Kueue's configuration and has a box to itself, and so has that of accounting.

mod accounting;
mod admission;
mod deadline;
mod multikueue;
mod queued;
mod retention;
mod topology;
mod ttl;

/// The field of the deadline.
const DEADLINE: &str = "activeDeadlineSeconds";
/// The field of the TTL.
const TTL: &str = "ttlSecondsAfterFinished";
/// A deadline that is long enough for what comes before it, on a busy machine.
const LONG: i64 = 20;
/// A TTL that is long enough for what is to be seen of a finished job and its Workload, on a busy machine.
const KEPT: i64 = 15;
