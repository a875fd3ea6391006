//! The operator around `plan`, as its shell does it: caches, a queue, timers, passes.
//!
//! What the real one does in parallel happens here in small steps, in whatever order a schedule says:
//! a watch event arrives, a timer fires, a pass begins, a request is sent, served, answered.

pub mod cache;
mod decision;
mod delivery;
mod late;
mod pass;
mod process;
mod replies;
mod streams;
mod under_way;

pub use self::{
    process::{Estimate, Operator, Turn},
    streams::Kind,
    under_way::Fate,
};
