//! What `plan` decides, rule by rule: each test is a sentence that a user would agree with.
//!
//! The rules are those of `docs/semantics.md`; every file has the tests of one of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]
#![expect(clippy::large_stack_arrays, reason = "a table of cases is an array of whole jobs")]

#[path = "../common/mod.rs"]
mod common;
mod scene;

mod accounting;
mod before_all_is_listed;
mod children;
mod children_beside;
mod deadline;
mod end;
mod evicted;
mod held;
mod holds;
mod late;
mod ours;
mod release;
mod status;
mod suspension;
mod ttl;
mod waiting;
