//! The same for the retention engine: its state machine under random schedules, on a model of the API server.
//!
//! [Replicas](process) drive the program's own `ClusterState`, which decides everything, as the program's tasks drive it.
//! Around them policies, objects and namespaces are edited, watches lag and break off, requests and answers are lost or
//! late, replicas end at any point, two of them act at once, the clock is uncertain, held or jumps, trips are acknowledged,
//! and rights are taken away. The [judge] sees the requests that the API server gets, and applies the [rules] of
//! `docs/retention.md` in a version of its own. In the [end](ending), when nothing goes wrong any more, everything that is
//! due has to be gone.

pub mod defect;
pub mod ending;
pub mod judge;
pub mod objects;
pub mod options;
pub mod process;
pub mod report;
pub mod rules;
mod schedule;
pub mod server;
mod users;
pub mod world;

pub use self::{
    defect::Defect,
    judge::Rule,
    options::Options,
    report::Report,
    schedule::{explore, run},
};
