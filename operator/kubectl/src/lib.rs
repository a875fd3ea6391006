//! `kubectl trainjob`: what the users of TrainJobs ask, answered in one command each.
//!
//! Decisions are pure functions of objects and the time; only [`access`], [`read`] and the commands themselves talk to
//! an API server. Deadlines, TTLs and releases are computed by the rules of the operator (`trainjob-core`).
//!
//! * [`arguments`]: the command line.
//! * [`run`](mod@run): from the command line to what is printed.
//! * [`access`]: the API server, by a kubeconfig, and its time.
//! * [`read`]: what is asked of it.
//! * [`status`], [`why`], [`extend`]: the commands, in their order.
//! * [`phase`], [`deadline`], [`ttl`], [`gpus`], [`row`], [`table`]: what `status` shows of a job.
//! * [`duration`]: spans of time, as people write and read them.
//! * [`failure`]: why a command failed.

pub mod access;
pub mod arguments;
pub mod deadline;
pub mod duration;
pub mod extend;
pub mod failure;
pub mod gpus;
pub mod phase;
pub mod read;
pub mod row;
pub mod run;
pub mod status;
pub mod table;
pub mod ttl;
pub mod why;
