//! The decisions of the retention engine: which finished objects a policy removes, and when.
//!
//! Everything here is pure: facts, policies and a time go in, decisions come out. The rules are those of
//! `docs/retention.md`.

pub mod breaker;
