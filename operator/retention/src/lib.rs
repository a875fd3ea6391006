//! The retention engine: executes the policies of `docs/retention.md`.
//!
//! The decisions are those of `trainjob-retention-core`. Here is what carries them out. News go one way:
//!
//! [watches](feed) tell the [state](cluster_state), a state machine without I/O, what there is; what changed waits as a
//! key in the queue of `trainjob-engine`; the [remover] takes it from there, asks the state what is to be done, does that,
//! and tells the state what came of it. A [status] shows what policies find, and so do the [gauges]. Why one object is, or is not,
//! deleted, a command of its own [explains](explain).

pub mod cluster_state;
pub mod config;
pub mod discovery;
pub mod explain;
pub mod feed;
pub mod gauges;
pub mod key;
pub mod manual;
pub mod metrics;
pub mod remover;
pub mod run;
pub mod second;
pub mod status;
pub mod watch;
mod words;
